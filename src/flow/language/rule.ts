import { MillraceError } from '../../core/errors.ts'
import { nearest } from '../../general/nearest.ts'
import { parseBytes, parseCount, parseDuration } from '../../general/units.ts'
import { evaluateBandwidth } from '../../model/options/bandwidth.ts'
import { checkShapes } from '../../model/options/option-shapes.ts'
import { checkIo } from '../../model/options/options.ts'
import { marksOf, pathOf, temp } from './marks.ts'
import type { FileSpec } from './marks.ts'
import { knownParameters } from './params.ts'
import { Pattern } from './pattern.ts'
import { CallSite, flowState } from './registry.ts'
import type { Rule, RuleFile } from './registry.ts'
import { flatten } from './shape.ts'
import type { FileShape } from './shape.ts'
import { workflowPath } from './workflow-path.ts'
import type { Action, InputSpec, InputsOf, PathsOf, RuleOptions, TargetBody, WildcardsOf } from './types.ts'

const OPTIONS: readonly (keyof RuleOptions)[] = [
  'name',
  'cpus',
  'memory',
  'tags',
  'io',
  'bandwidth',
  'size',
  'storage',
  'temporary',
  'priority',
  'retries',
  'timeout',
  'log',
  'env',
  'cwd',
  'exitCodes',
  'cost',
  'uses',
]

/**
 * How files are made from others. The function gives the command; an asynchronous function may do the work
 * itself.
 *
 *     rule('proj/{name}.fits', ['raw/{name}.fits', 'region.hdr'], { cpus: 1 },
 *       ({ out, in: [img, hdr] }) => sh`mProject ${img} ${out} ${hdr}`)
 */
export function rule<const O extends FileShape, const I extends InputSpec<WildcardsOf<O>>>(
  outputs: O,
  inputs: I,
  action: Action<PathsOf<O>, InputsOf<I>, WildcardsOf<O>>,
): void
export function rule<const O extends FileShape, const I extends InputSpec<WildcardsOf<O>>>(
  outputs: O,
  inputs: I,
  options: RuleOptions<WildcardsOf<O>>,
  action: Action<PathsOf<O>, InputsOf<I>, WildcardsOf<O>>,
): void
export function rule(outputs: unknown, inputs: unknown, third: unknown, fourth?: unknown): void {
  const site = new CallSite(rule)
  try {
    flowState.registry.addRule(readRule(outputs, inputs, third, fourth, site))
  } catch (error) {
    throw placed(error, site)
  }
}

/**
 * Something to ask for by name: a list of files, or a function that finds out what is needed. The function may
 * add rules as it learns.
 */
export function target(name: string, what: string | readonly string[] | TargetBody): void {
  const site = new CallSite(target)
  try {
    if (typeof name !== 'string' || name === '') throw bad(`the name of a target is ${String(name)}`)
    const isBody = typeof what === 'function'
    const files = (isBody ? [] : Array.isArray(what) ? what : [what]) as readonly string[]
    if (!files.every(file => typeof file === 'string')) {
      throw bad(`target ${name} is neither a list of files nor a function`)
    }
    flowState.registry.addTarget({
      name,
      files: files.map(workflowPath),
      body: isBody ? what : null,
      site,
    })
  } catch (error) {
    throw placed(error, site)
  }
}

function readRule(outputs: unknown, inputs: unknown, third: unknown, fourth: unknown, site: CallSite): Rule {
  const hasOptions = typeof third === 'object' && third !== null
  const action = (hasOptions ? fourth : third) as Rule['action']
  if (typeof action !== 'function') {
    throw bad(`the last argument of a rule is ${typeof action}, not a function that gives its command`)
  }
  if (action.length > 1) {
    throw bad(
      `the function of a rule has ${action.length} parameters, and gets one object: ({ out, in: [first], wildcards, params }) => …`,
    )
  }
  expectNoLetters(action, 'out', outputs)
  expectNoLetters(action, 'in', inputs)
  const { files, shape } = flatten('the outputs of a rule', outputs)
  if (files.length === 0) throw bad('a rule has no outputs')
  const options = (hasOptions ? third : {}) as RuleOptions
  const made = files.map(file => ruleFile(options.temporary === true ? temp(file) : file))
  const name = made[0]?.pattern.text ?? ''
  checkOptions(name, options)
  const names = checkWildcards(name, made)
  if (options.log !== undefined) checkKnown(name, names, new Pattern(options.log))
  return {
    number: flowState.registry.rules.length,
    name: options.name ?? name,
    outputs: made,
    outputShape: shape,
    inputs: typeof inputs === 'function' ? inputs : readInputs(name, names, inputs),
    options,
    action,
    site,
    parameters: flowState.atLoad === null ? null : knownParameters(),
    isAsync: action.constructor.name === 'AsyncFunction',
    hasTemps: made.some(({ marks }) => marks.temp),
    hasFolders: made.some(({ marks }) => marks.directory),
  }
}

/** A text can be taken apart like a list, which gives its letters: never meant for a path. */
function expectNoLetters(action: unknown, key: 'in' | 'out', given: unknown): void {
  if (typeof given !== 'string') return
  const parameters = String(action).slice(0, 200).split('=>')[0] ?? ''
  if (!new RegExp(String.raw`\b${key}\s*:\s*\[`).test(parameters)) return
  throw bad(
    `'${given}' is one file and no list, so '${key}' is its path; write { ${key}: name }, or give ['${given}']`,
  )
}

const ruleFile = (file: FileSpec): RuleFile => ({ pattern: new Pattern(pathOf(file)), marks: marksOf(file) })

/** @internal */
export function readInputs(name: string, names: readonly string[], given: unknown) {
  const { files, shape } = flatten(`the inputs of ${name}`, given)
  const read = files.map(ruleFile)
  for (const { pattern, marks } of read) {
    checkKnown(name, names, pattern)
    if (marks.stream) throw bad(`stream('${pattern.text}') is an input of ${name}, and rules are for outputs`)
  }
  return { files: read, shape }
}

/** From one output all wildcards must be known, whichever output is asked for. */
function checkWildcards(name: string, made: readonly RuleFile[]): readonly string[] {
  const names = made[0]?.pattern.names ?? []
  for (const { pattern, marks } of made) {
    if (marks.stream?.files !== undefined && !marks.directory)
      throw bad(`on_n_files is for directories: write stream(dir('${pattern.text}'), …)`)
    const differs = pattern.names.length !== names.length || pattern.names.some(one => !names.includes(one))
    if (differs) throw bad(`the outputs ${name} and ${pattern.text} do not have the same wildcards`)
  }
  return names
}

function checkKnown(name: string, names: readonly string[], pattern: Pattern): void {
  const unknown = pattern.names.find(one => !names.includes(one))
  if (unknown === undefined) return
  const close = nearest(unknown, names)
  throw bad(
    `{${unknown}} in '${pattern.text}' is not a wildcard of ${name}${close ? `; did you mean {${close}}?` : ''}`,
  )
}

function checkOptions(name: string, options: RuleOptions): void {
  for (const key of Object.keys(options)) {
    if ((OPTIONS as readonly string[]).includes(key)) continue
    const close = nearest(key, OPTIONS)
    throw new MillraceError(
      'MR_OPTION',
      `the rule of ${name} has no option '${key}'${close ? `; did you mean '${close}'?` : ''}`,
      { hint: `Options: ${OPTIONS.join(', ')}.` },
    )
  }
  checkShapes(`the rule of ${name}`, options as Record<string, unknown>)
  checkIo(`the rule of ${name}`, options)
  const { cpus, memory, size, bandwidth, timeout, retries } = options
  const isKnown = typeof bandwidth !== 'function' && !String(bandwidth).startsWith('$')
  if (isKnown) evaluateBandwidth(`the rule of ${name}`, bandwidth, null)
  const isWrong = (value: unknown, parse: (given: string | number) => number | null): boolean =>
    (typeof value === 'number' || (typeof value === 'string' && !value.startsWith('$'))) &&
    parse(value) === null
  const wrong = isWrong(cpus, parseCount)
    ? ['cpus', cpus]
    : isWrong(memory, parseBytes)
      ? ['memory', memory]
      : isWrong(size, parseBytes)
        ? ['size', size]
        : isWrong(timeout, parseDuration)
          ? ['timeout', timeout]
          : isWrong(retries, parseCount)
            ? ['retries', retries]
            : null
  if (wrong)
    throw new MillraceError('MR_UNIT', `the rule of ${name}: ${wrong[0]} cannot be '${String(wrong[1])}'`)
}

const bad = (message: string): MillraceError => new MillraceError('MR_FLOW_RULE', message)

function placed(error: unknown, site: CallSite): unknown {
  if (!(error instanceof MillraceError) || error.code === 'MR_FLOW_AMBIGUOUS') return error
  return new MillraceError(error.code, `${site}: ${error.shortMessage}`, { hint: error.hint, cause: error })
}
