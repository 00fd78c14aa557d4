import { existsSync, readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { append } from '../../general/append.ts'
import { nearest } from '../../general/nearest.ts'
import type { FileTable } from '../state/file-table.ts'
import { Makers } from './makers.ts'
import type { RecordTable } from '../state/record-table.ts'
import { flowState } from '../language/registry.ts'
import type { Registry } from '../language/registry.ts'
import { checkKept, explainStale } from './reasons.ts'
import { NO_FILE, asArgument, placeOf, textHash } from './work.ts'
import type { Work } from './work.ts'
import { workflowPath } from '../language/workflow-path.ts'

/** What is made again though it is up to date: everything, what was asked for and not what it needs, or what some rules make. */
export interface Force {
  readonly what: 'all' | 'goals' | 'none'
  /** Names of rules. */
  readonly rules: ReadonlySet<string>
}

export const NO_FORCE: Force = { what: 'none', rules: new Set() }

export interface PlanOptions {
  readonly force: Force
  /** Tasks that are up to date are not needed afterwards. */
  readonly lean: boolean
}

export interface Plan {
  /** The files that were asked for. */
  readonly goals: readonly number[]
  /** What has to be done, inputs before what is made of them. */
  readonly todo: Work[]
  /** Files whose content has to be looked at before the plan can be made. Then `todo` is empty. */
  readonly doubts: number[]
}

/** Number of missing files for which others are suggested, which compares all names. */
const SUGGESTIONS = 10

interface Frame {
  readonly work: Work
  next: number
}

/** Decides what is up to date. Looks at files, but does not read them and changes nothing. */
export class Planner {
  readonly makers: Makers
  readonly #registry: Registry
  readonly #files: FileTable
  readonly #records: RecordTable
  readonly #options: PlanOptions
  /** What this plan has decided, but for what is forgotten: others may have been planned and not begun yet. */
  #touched: Work[] = []
  /** All that was asked for, where that is forced. */
  readonly #goals = new Set<number>()
  #missing = 0
  /** Tasks that are up to date, so far. */
  leftAlone = 0

  constructor(registry: Registry, files: FileTable, records: RecordTable, options: PlanOptions) {
    this.#registry = registry
    this.#files = files
    this.#records = records
    this.#options = options
    this.makers = new Makers(registry, files, records, options.lean)
  }

  plan(paths: readonly string[]): Plan {
    const todo: Work[] = []
    const doubts: number[] = []
    const goals = this.#numbers(paths)
    if (this.#options.force.what === 'goals') for (const goal of goals) this.#goals.add(goal)
    this.#touched = []
    try {
      for (const goal of goals) {
        const work = this.makers.of(goal)
        if (!work) this.#checkSource(goal, null)
        else if (work.state === 'failed') throw this.#failedInput(goal)
        else if (work.state === 'new') this.#visit(work, todo, doubts)
      }
    } catch (error) {
      // The caller may go on without it.
      this.#startAnew()
      throw error
    }
    if (doubts.length > 0) {
      this.#startAnew()
      return { goals, todo: [], doubts }
    }
    if (this.#registry.rules.some(rule => rule.hasTemps)) {
      for (const goal of goals) {
        const work = this.makers.of(goal)
        if (work?.state !== 'absent' || this.#files.exists(goal)) continue
        this.#require(work, `${this.#files.path(goal)} does not exist`, todo)
      }
    }
    return { goals, todo, doubts }
  }

  /** Nothing that was decided is done. */
  #startAnew(): void {
    for (const work of this.#touched) {
      // What is forgotten stays as it is.
      const isDecidedAnew = this.makers.of(work.outputs[0] as number) === work
      if (isDecidedAnew && (work.state === 'fresh' || work.state === 'absent')) this.leftAlone--
      work.state = 'new'
      work.isMissed = false
    }
  }

  /** Lists most often have the order, or the reverse order, of the last time. */
  #numbers(paths: readonly string[]): number[] {
    const files = this.#files
    const numbers: number[] = []
    let last = -1
    let step = 1
    for (const path of paths) {
      const guess = this.#records.firstOutput(last + step)
      const number = files.isAt(guess, path) ? guess : files.id(workflowPath(path))
      const record = this.#records.numberOf(number)
      step = record - last || 1
      last = record
      numbers.push(number)
    }
    return numbers
  }

  /** Depth first without recursion: chains may be long. */
  #visit(root: Work, todo: Work[], doubts: number[]): void {
    const stack: Frame[] = [{ work: root, next: 0 }]
    this.#begin(root)
    for (let frame = stack.at(-1); frame; frame = stack.at(-1)) {
      const { work } = frame
      const input = work.inputs[frame.next++]
      if (input === undefined) {
        stack.pop()
        this.#decide(work, todo, doubts)
      } else if (input !== NO_FILE) {
        const maker = this.makers.of(input)
        if (!maker) this.#checkSource(input, work)
        else if (maker.state === 'visiting') throw this.#cycle(stack, maker)
        else if (maker.state === 'failed') throw this.#failedInput(input)
        else if (maker.state === 'new') {
          this.#begin(maker)
          stack.push({ work: maker, next: 0 })
        }
      }
    }
  }

  #begin(work: Work): void {
    work.state = 'visiting'
    this.#touched.push(work)
  }

  #decide(work: Work, todo: Work[], doubts: number[]): void {
    const files = this.#files
    const { outputs, inputs } = work
    this.readCommand(work)
    let remade: Set<number> | null = null
    for (const input of inputs) {
      if (input === NO_FILE) continue
      const maker = this.makers.of(input)
      // A directory was made since its content was listed.
      if (maker?.state === 'done' && placeOf(input, maker) < 0) files.forget(input)
      if (maker && isToRun(maker)) (remade ??= new Set()).add(input)
      else if (files.exists(input) && !files.isAsStamped(input)) this.#doubt(work, input, doubts)
    }
    let isAbsent = false
    for (let i = 0; i < outputs.length; i++) {
      const output = outputs[i] as number
      if (files.exists(output)) {
        if (!files.isAsStamped(output)) this.#doubt(work, output, doubts)
      } else if (work.rule.outputs[i]?.marks.temp && files.stamp[output] !== 0) isAbsent = true
      else files.stamp[output] = 0
    }
    if (doubts.length > 0) {
      // All doubts are found in one go; what is decided meanwhile does not count.
      work.state = 'stale'
      return
    }
    const isKnown = this.#records.matches(
      outputs[0] as number,
      work.text,
      outputs,
      inputs,
      files.stamp,
      remade,
    )
    if (this.#isForced(work)) this.#stale(work, 'it is forced', todo)
    else if (!isKnown) this.#stale(work, explainStale(work, files, this.#records), todo)
    else if (remade !== null) {
      // What is gone must be there for readers that turn out to need it.
      work.state = isAbsent ? 'stale' : 'maybe'
      work.isMissed = isAbsent
      const [first] = remade as Set<number>
      work.reason = `${files.path(first as number)} is made again`
      this.#requireInputs(work, todo)
      todo.push(work)
    } else {
      work.state = isAbsent ? 'absent' : 'fresh'
      this.leftAlone++
      if (!isAbsent && this.makers.release(work) && this.#touched.at(-1) === work) this.#touched.pop()
    }
  }

  /** What it does, as far as can be seen now. */
  readCommand(work: Work): void {
    work.text = textHash(work, this.#names(work.outputs) as string[], this.#names(work.inputs))
  }

  #names(ids: readonly number[]): (string | undefined)[] {
    const names: (string | undefined)[] = []
    for (const id of ids) names.push(id === NO_FILE ? undefined : asArgument(this.#files.path(id)))
    return names
  }

  /** Only a task that was done before can be spared by looking into a file. */
  #doubt(work: Work, file: number, doubts: number[]): void {
    if (this.#records.has(work.outputs[0] as number) && !this.#isForced(work)) doubts.push(file)
  }

  #isForced(work: Work): boolean {
    const { what, rules } = this.#options.force
    if (what === 'all') return true
    if (what === 'goals' && work.outputs.some(output => this.#goals.has(output))) return true
    return rules.size > 0 && rules.has(work.rule.name)
  }

  #stale(work: Work, reason: string, todo: Work[]): void {
    if (!this.#isForced(work)) checkKept(work, this.#files, reason)
    work.state = 'stale'
    work.reason = reason
    this.#requireInputs(work, todo)
    todo.push(work)
  }

  #requireInputs(work: Work, todo: Work[]): void {
    for (const input of work.inputs) {
      const maker = input === NO_FILE ? null : this.makers.of(input)
      if (maker?.state === 'absent' && !this.#files.exists(input)) {
        const reader = this.#files.path(work.outputs[0] as number)
        this.#require(maker, `${this.#files.path(input)} is needed for ${reader}`, todo)
      }
    }
  }

  /** Temporary files that are gone are made again for those who need them. */
  #require(work: Work, reason: string, todo: Work[]): void {
    const stack = [{ work, reason }]
    const found: Work[] = []
    for (let one = stack.pop(); one; one = stack.pop()) {
      if (one.work.state !== 'absent') continue
      this.#touched.push(one.work)
      this.leftAlone--
      one.work.state = 'stale'
      one.work.isMissed = true
      one.work.reason = one.reason
      found.push(one.work)
      const reader = this.#files.path(one.work.outputs[0] as number)
      for (const input of one.work.inputs) {
        const maker = input === NO_FILE ? null : this.makers.of(input)
        if (!maker || this.#files.exists(input)) continue
        stack.push({ work: maker, reason: `${this.#files.path(input)} is needed for ${reader}` })
      }
    }
    append(todo, found.reverse())
  }

  #checkSource(file: number, reader: Work | null): void {
    const path = this.#files.path(file)
    // No task reads it: what is in a folder does not matter, and may be the whole file system.
    if (reader ? this.#files.exists(file) : existsSync(path)) return
    this.#files.forget(file)
    // --watch has to notice when it appears.
    flowState.listed.add(resolve(path))
    const close = this.#missing++ < SUGGESTIONS ? nearest(path, this.#candidates(path)) : null
    const meant = close ? `; did you mean ${close}?` : ''
    if (!reader) {
      const target = close ? '' : ` and no target is called ${path}`
      const isParameter = /^\w+=/.test(path)
      throw new MillraceError(
        'MR_FLOW_MISSING',
        `${path} does not exist and no rule makes it${target}${meant}`,
        isParameter
          ? { hint: `If it is a parameter, write it after --, as in: millrace make -- ${path}` }
          : {},
      )
    }
    const made = this.#files.path(reader.outputs[0] as number)
    throw new MillraceError(
      'MR_FLOW_MISSING',
      `${path}, which ${made} is made of, does not exist and no rule makes it${meant} (rule at ${reader.rule.site})`,
    )
  }

  #failedInput(file: number): MillraceError {
    return new MillraceError('MR_TASK_FAILED', `${this.#files.path(file)} could not be made`)
  }

  /** Names to suggest: targets, files in the same folder, files that rules make. */
  *#candidates(path: string): Generator<string> {
    yield* this.#registry.targets.keys()
    yield* this.#registry.concrete.keys()
    yield* neighbours(path)
  }

  #cycle(stack: readonly Frame[], again: Work): MillraceError {
    const from = stack.findIndex(({ work }) => work === again)
    const names = [...stack.slice(from).map(({ work }) => work), again].map(work =>
      this.#files.path(work.outputs[0] as number),
    )
    const shown = names.length > 8 ? [...names.slice(0, 4), '…', ...names.slice(-3)] : names
    return new MillraceError(
      'MR_FLOW_CYCLE',
      `${names[0]} is needed to make itself: ${shown.join(' <- ')} (rule at ${again.rule.site})`,
    )
  }
}

/** It will be run, or is: what it makes is not known yet. */
const isToRun = ({ state }: Work): boolean => state === 'stale' || state === 'maybe' || state === 'running'

function neighbours(path: string): string[] {
  const at = path.lastIndexOf('/')
  const folder = at < 0 ? '.' : path.slice(0, at)
  try {
    return readdirSync(folder).map(name => (at < 0 ? name : `${folder}/${name}`))
  } catch {
    return []
  }
}
