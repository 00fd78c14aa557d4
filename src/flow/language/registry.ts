import { MillraceError } from '../../core/errors.ts'
import type { Marks } from './marks.ts'
import { PatternIndex } from './pattern-index.ts'
import type { Pattern } from './pattern.ts'
import type { Shape } from './shape.ts'
import type { Action, RuleOptions, TargetBody } from './types.ts'

export interface RuleFile {
  readonly pattern: Pattern
  readonly marks: Marks
}

export interface Rule {
  readonly number: number
  readonly name: string
  readonly outputs: readonly RuleFile[]
  readonly outputShape: Shape
  /** The files, or a function of the wildcards that gives them. */
  readonly inputs: { readonly files: readonly RuleFile[]; readonly shape: Shape } | Function
  readonly options: RuleOptions
  readonly action: Action<unknown, unknown, Record<string, string>> | null
  readonly site: CallSite
  /** What its function may depend on, if the rule was added after loading. */
  readonly parameters: string | null
  /** Its function does the work itself; of some that is known only when they have been called. */
  isAsync: boolean
  /** Files come and go, or come with others, so that tasks have to be remembered. */
  readonly hasTemps: boolean
  readonly hasFolders: boolean
}

export interface Target {
  readonly name: string
  readonly files: readonly string[]
  readonly body: TargetBody | null
  readonly site: CallSite
}

/** Where a rule was written. The text is made on demand: most rules are never in an error. */
export class CallSite {
  readonly #error: Error

  constructor(above: Function) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 4
    this.#error = new Error('here')
    Error.captureStackTrace(this.#error, above)
    Error.stackTraceLimit = stackTraceLimit
  }

  /** `flow.ts:12:3`, as an editor understands it. */
  toString(): string {
    const line = this.#error.stack?.split('\n').find(text => text.trimStart().startsWith('at ')) ?? ''
    const place = /\(?((?:file:\/\/)?[^()]+:\d+:\d+)\)?$/.exec(line.trim())?.[1] ?? ''
    const path = decodeURI(
      place
        .replace(/^at (?:async )?/, '')
        .replace(/^file:\/\//, '')
        .replace(/\?[^:]*/, ''),
    )
    const here = `${process.cwd()}/`
    return path.startsWith(here) ? path.slice(here.length) : path
  }
}

/** Everything that a workflow file says. Rules and targets may be added while it runs. */
export class Registry {
  readonly rules: Rule[] = []
  readonly targets = new Map<string, Target>()
  /** Rules without wildcards, by what they make. */
  readonly concrete = new Map<string, Rule>()
  readonly patterns = new PatternIndex()
  /** Grows with each rule: what was found out before may not hold any more. */
  get generation(): number {
    return this.rules.length
  }

  addRule(rule: Rule): void {
    this.rules.push(rule)
    if (!rule.outputs.every(({ pattern }) => pattern.isConcrete)) {
      this.patterns.add(rule)
      return
    }
    for (const { pattern } of rule.outputs) {
      const path = pattern.fill({})
      const other = this.concrete.get(path)
      if (other) {
        throw new MillraceError(
          'MR_FLOW_AMBIGUOUS',
          `two rules make ${path}: ${other.site} and ${rule.site}`,
          { hint: 'Leave out one of them, or give their outputs different names.' },
        )
      }
      this.concrete.set(path, rule)
    }
  }

  /** The files behind these names, and the targets that find theirs out: lists may name other targets. */
  resolve(names: readonly string[]): { files: string[]; bodies: Target[] } {
    const files: string[] = []
    const bodies: Target[] = []
    const seen = new Set<Target>()
    /** Lists that lead to where we are. */
    const open = new Set<Target>()
    const add = (list: readonly string[]): void => {
      for (const name of list) {
        const target = this.targets.get(name)
        // A target may be called as a file that it names.
        if (!target || open.has(target)) files.push(name)
        else if (!seen.has(target)) {
          seen.add(target)
          if (target.body) bodies.push(target)
          else {
            open.add(target)
            add(target.files)
            open.delete(target)
          }
        }
      }
    }
    add(names)
    return { files, bodies }
  }

  /** Gives what takes away all that has been added since. */
  remember(): () => void {
    const { length } = this.rules
    const targets = [...this.targets]
    const concrete = [...this.concrete]
    return () => {
      this.rules.length = length
      this.patterns.keepFirst(length)
      this.targets.clear()
      for (const [name, target] of targets) this.targets.set(name, target)
      this.concrete.clear()
      for (const [path, rule] of concrete) this.concrete.set(path, rule)
    }
  }

  addTarget(target: Target): void {
    const other = this.targets.get(target.name)
    if (other) {
      throw new MillraceError(
        'MR_FLOW_AMBIGUOUS',
        `two targets are called ${target.name}: ${other.site} and ${target.site}`,
      )
    }
    this.targets.set(target.name, target)
  }
}

interface FlowState {
  registry: Registry
  /** Parameters as they were given. */
  given: Map<string, string>
  /** Those that the workflow has asked for, with the values that it got. */
  asked: Map<string, string>
  /** Those that functions of rules have asked for. */
  read: Set<string>
  /** What functions of rules may depend on, as of the end of loading; null until then. */
  atLoad: string | null
  /** Folders in which it has looked for files. */
  listed: Set<string>
  /** Files of settings and tables that it has read, with a digest of each. */
  data: Map<string, string>
}

const KEY = Symbol.for('millrace.flow.4')
const holder = globalThis as unknown as Record<symbol, FlowState | undefined>

/** Once per thread, also when the package was loaded twice. */
export const flowState: FlowState = (holder[KEY] ??= {
  registry: new Registry(),
  given: new Map(),
  asked: new Map(),
  read: new Set(),
  atLoad: null,
  listed: new Set(),
  data: new Map(),
})
