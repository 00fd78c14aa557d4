/**
 * What can be known to go wrong before anything starts: rules for files that no step writes, rules that
 * contradict each other, circles. Each check adds to `problems`; none stops the others.
 */
import { type Commit, commitText, type Config, type Name } from './language.ts'
import { NameIndex } from './names.ts'
import { intersects } from './pattern.ts'
import { type EffectiveRule, effectiveRules, streamIndex, writesPlainNames } from '../board/plan.ts'
import { nearest } from '../../general/nearest.ts'
import type { Problems } from './problems.ts'
import { checkFileCircles, checkStepCircles } from './circles.ts'
import { checkLists } from './check-lists.ts'

export function checkConfig(config: Config, groups: string[], problems: Problems): void {
  const rules = effectiveRules(config)
  checkSteps(config, problems)
  checkGroups(config, groups, problems)
  checkWriters(config, problems)
  checkContradictions(rules, problems)
  checkKinds(config, problems)
  checkFileCircles(rules, problems)
  checkStepCircles(config, rules, problems)
  checkLists(config, problems)
}

function checkSteps(config: Config, problems: Problems): void {
  for (const step of config.steps) {
    if (step.inputs.length === 0 && step.outputs.length === 0) {
      const message = `step '${step.name}' reads and writes nothing`
      problems.warning(step.at, step.field, message, 'add "input_stream" or "output_stream"')
    }
    for (const side of ['inputs', 'outputs'] as const) {
      const seen = new Set<string>()
      for (const { pattern, at, field } of step[side]) {
        if (seen.has(pattern.text))
          problems.warning(at, field, `'${pattern.text}' is in this list twice`, 'remove one')
        seen.add(pattern.text)
      }
    }
    const written = new NameIndex(step.outputs.map(name => [name.pattern, name] as const))
    for (const { pattern, at, field } of step.inputs) {
      if (written.touching(pattern).length === 0) continue
      const own = step.outputs.map(name => name.pattern)
      const others = config.steps.filter(other => other !== step).flatMap(other => other.outputs)
      if (
        pattern.literal === undefined &&
        writesPlainNames(own, pattern) &&
        others.some(name => intersects(pattern, name.pattern))
      )
        continue // it waits for the names that others write
      const message = `step '${step.name}' reads '${pattern.text}' and writes it too: it does not wait for itself`
      problems.warning(at, field, message, 'leave it out of input_stream if only this step uses it')
    }
  }
}

/** A bare word that is nearly the name of a group, and that no step writes, is a group mistyped. */
function checkGroups(config: Config, groups: string[], problems: Problems): void {
  if (groups.length === 0) return
  const writers = streamIndex(config, 'outputs')
  const lists = [config.permanent, config.exclude, config.memory, config.fs, config.create, config.hashing]
  const used = [
    ...config.steps.map(step => step.inputs),
    ...lists,
    ...config.manual.map(home => home.files),
  ].flat()
  for (const { pattern, at, field, alias, path } of used) {
    if (alias !== undefined || pattern.literal === undefined || path || pattern.literal.includes('.'))
      continue
    const near = nearest(pattern.literal, groups)
    if (near === null || writers.covering(pattern.literal).length > 0) continue
    const message = `no group and no written file is called '${pattern.literal}'`
    const fix = `did you mean the group '${near}'? For a file of that name, write './${pattern.literal}'`
    problems.error(at, field, message, fix)
  }
}

function checkWriters(config: Config, problems: Problems): void {
  const writers = streamIndex(config, 'outputs')
  const outputs = config.steps.flatMap(step => step.outputs.map(name => name.pattern.text))
  const own = new Map(
    config.steps.map(step => [step.name, new NameIndex(step.outputs.map(n => [n.pattern, n] as const))]),
  )
  const suggest = (text: string, otherwise: string): string => {
    const near = nearest(text, outputs)
    return near === null ? otherwise : `did you mean '${near}'? Or ${otherwise}`
  }
  for (const rule of config.rules) {
    const { pattern, at, field } = rule.name
    const among = <T>(index: NameIndex<T>): T[] =>
      rule.directory ? index.touchingTree(pattern) : index.touching(pattern)
    const steps = among(writers)
    const add = `add '${pattern.text}' to the output_stream of the step that writes it`
    if (steps.length === 0) {
      const message = `a rule for '${pattern.text}', which no step writes: it has no effect`
      problems.warning(at, field, message, suggest(pattern.text, add))
    } else if (among(own.get(rule.step)!).length === 0) {
      const message = `the rule for '${pattern.text}' stands in step '${rule.step}', but ${quoted(steps)} writes it`
      problems.warning(at, field, message, 'move the rule there; it applies where it is, too')
    }
    checkCount(rule.commit, steps, rule.name, problems)
  }
  const reported = new Set<string>()
  for (const dep of config.rules.flatMap(rule => depsOf(rule.commit))) {
    const key = `${dep.at.line}:${dep.at.column}`
    if (dep.pattern.literal === undefined && !reported.has(key)) {
      const message = `'${dep.pattern.text}' has a wildcard: it cannot be known when all such files are complete`
      const fix = 'name the files one by one, or a directory with its number of files'
      problems.error(dep.at, dep.field, message, fix)
      reported.add(key)
    }
    if (
      reported.has(key) ||
      writers.touching(dep.pattern).length > 0 ||
      writers.touchingTree(dep.pattern).length > 0
    )
      continue
    reported.add(key)
    const message = `waits for '${dep.pattern.text}', which no step writes: it would never be complete`
    const add = `add '${dep.pattern.text}' to an output_stream`
    problems.error(dep.at, dep.field, message, suggest(dep.pattern.text, add))
  }
}

function checkCount(commit: Commit, steps: string[], { pattern, at, field }: Name, problems: Problems): void {
  if (
    commit.on === 'close' &&
    commit.count === undefined &&
    steps.length > 1 &&
    pattern.literal !== undefined
  ) {
    const message = `${steps.length} steps write '${pattern.text}', but the first close completes it`
    problems.warning(at, field, message, `write on_close:${steps.length}, or how often it is closed in all`)
  }
  if (commit.on !== 'termination' || commit.count === undefined || commit.count <= steps.length) return
  if (steps.length === 0) return
  const message = `'${pattern.text}' is complete when ${commit.count} of its writers have ended, but ${steps.length} step writes it`
  problems.warning(
    at,
    field,
    message,
    `right if the step is started ${commit.count} times; else write on_termination`,
  )
}

/** The same name with two meanings is an error; two patterns that overlap are only worth a word. */
function checkContradictions(rules: EffectiveRule[], problems: Problems): void {
  const written = rules.filter(rule => rule.origin === 'rule')
  const first = new Map<string, EffectiveRule>()
  for (const rule of written) {
    const { text } = rule.pattern
    const before = first.get(text)
    if (before === undefined) {
      first.set(text, rule)
      continue
    }
    const { at, field } = rule.name
    const where = `line ${before.name.at.line}`
    if (before.directory !== rule.directory) {
      const message = `'${text}' is a ${rule.directory ? 'directory' : 'file'} here and a ${before.directory ? 'directory' : 'file'} in ${where}`
      problems.error(at, field, message, 'keep one of the two rules')
    } else if (meaning(before) !== meaning(rule)) {
      const message = `'${text}' is ${meaning(rule)} here and ${meaning(before)} in ${where}`
      problems.error(at, field, message, 'keep one of the two rules')
    } else if (before.field.split('.')[0] === rule.field.split('.')[0]) {
      problems.warning(at, field, `the same rule for '${text}' is already in ${where}`, 'remove one')
    }
  }
  const wild = written.filter(rule => rule.pattern.literal === undefined && !rule.directory)
  for (const [index, rule] of wild.entries()) {
    for (const other of wild.slice(0, index)) {
      if (other.pattern.text.length !== rule.pattern.text.length || other.pattern.text === rule.pattern.text)
        continue
      if (meaning(other) === meaning(rule) || !intersects(other.pattern, rule.pattern)) continue
      const message = `'${rule.pattern.text}' and '${other.pattern.text}' (line ${other.name.at.line}) match some of the same files, with different rules and equally long`
      problems.warning(
        rule.name.at,
        rule.name.field,
        message,
        'the first in the file wins; write a longer pattern to be clear',
      )
    }
  }
}

/** A file rule for something that other names show to be a directory. */
function checkKinds(config: Config, problems: Problems): void {
  const parents = new Set<string>()
  for (const step of config.steps) {
    for (const { pattern } of [...step.inputs, ...step.outputs]) {
      for (let at = pattern.text.lastIndexOf('/'); at > 0; at = pattern.text.lastIndexOf('/', at - 1)) {
        parents.add(pattern.text.slice(0, at))
      }
    }
  }
  for (const rule of config.rules) {
    const { pattern, at, field } = rule.name
    if (rule.directory || !parents.has(pattern.text)) continue
    const message = `'${pattern.text}' is named as a file, but other names lie below it`
    problems.warning(at, field, message, 'write "dirname" in place of "name"')
  }
}

export const depsOf = (commit: Commit): Name[] => (commit.on === 'file' ? commit.deps : [])

const meaning = (rule: { commit: Commit; fire: string }): string => `${commitText(rule.commit)}/${rule.fire}`

const quoted = (names: string[]): string => names.map(name => `'${name}'`).join(' and ')
