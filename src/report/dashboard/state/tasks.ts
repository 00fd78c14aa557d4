import type { RunEvent } from '../../../core/events.ts'
import { bytes, ids, times } from './columns.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** Where a task is; the number is its place in this list. */
export const TASK_STATES = [
  'unknown',
  'waiting',
  'ready',
  'running',
  'blocked',
  'done',
  'failed',
  'ignored',
  'cancelled',
] as const
export type TaskState = (typeof TASK_STATES)[number]

/** Events of one task that are kept as they came: those that tell why. */
export type ToldEvent = Of<
  | 'blocked'
  | 'resumed'
  | 'failed'
  | 'cancelled'
  | 'returned'
  | 'waits'
  | 'started'
  | 'finished'
  | 'released'
  | 'kept'
>

/** Told events kept in all, and of one task. */
const KEPT_EVENTS = 200_000
const KEPT_OF_ONE = 200

/** What is known of every task, in columns. */
export class Tasks {
  count = 0
  last = -1
  readonly kinds = ids()
  readonly states = bytes()
  readonly submittedAt = times()
  readonly readyAt = times()
  readonly startedAt = times()
  readonly endedAt = times()
  readonly nodes = ids()
  readonly lanes = ids()
  readonly devices = ids()
  readonly demands = ids()
  readonly parents = ids()
  readonly attempts = bytes()
  readonly priorities = new Map<number, number>()
  readonly groups = new Map<number, string>()
  /** What definitions say of their tasks; others differ by their files. */
  readonly labels = new Map<number, string>()
  /** What tasks were called with, in words; of the first ones, if there are very many. */
  readonly arguments = new Map<number, string>()
  /** Reads and writes of all tasks lie one after the other; these say where those of a task begin, and how many there are. */
  readonly #from = ids()
  readonly #readCounts = ids()
  readonly #writeCounts = ids()
  readonly #versions = ids()
  #used = 0
  readonly #told = new Map<number, ToldEvent[]>()
  #toldCount = 0

  submit(event: Of<'submitted'>): void {
    const { task, reads, writes } = event
    if (this.kinds.get(task) < 0) this.count++
    this.last = Math.max(this.last, task)
    this.kinds.set(task, event.kind)
    this.setState(task, 'waiting')
    this.submittedAt.set(task, event.at)
    this.parents.set(task, event.parent ?? -1)
    this.demands.set(task, event.demand ?? -1)
    if (event.priority !== 0) this.priorities.set(task, event.priority)
    if (event.group !== null) this.groups.set(task, event.group)
    if (event.label !== undefined) this.labels.set(task, event.label)
    this.#from.set(task, this.#used)
    this.#readCounts.set(task, reads.length)
    this.#writeCounts.set(task, writes.length)
    for (const version of reads) this.#versions.set(this.#used++, version)
    for (const version of writes) this.#versions.set(this.#used++, version)
  }

  setState(task: number, state: TaskState): void {
    this.states.set(task, TASK_STATES.indexOf(state))
  }

  stateOf(task: number): TaskState {
    return TASK_STATES[this.states.get(task)] ?? 'unknown'
  }

  has(task: number): boolean {
    return this.kinds.get(task) >= 0
  }

  readsOf(task: number): number[] {
    return this.#list(this.#from.get(task), this.#readCounts.get(task))
  }

  writesOf(task: number): number[] {
    return this.#list(this.#from.get(task) + this.#readCounts.get(task), this.#writeCounts.get(task))
  }

  calledWith(task: number, text: string): void {
    if (this.arguments.size < KEPT_EVENTS) this.arguments.set(task, text)
  }

  tell(event: ToldEvent): void {
    if (this.#toldCount >= KEPT_EVENTS) return
    const told = this.#told.get(event.task)
    if (!told) this.#told.set(event.task, [event])
    else if (told.length < KEPT_OF_ONE) told.push(event)
    else return
    this.#toldCount++
  }

  toldOf(task: number): readonly ToldEvent[] {
    return this.#told.get(task) ?? []
  }

  #list(from: number, count: number): number[] {
    return count > 0 ? Array.from(this.#versions.values.subarray(from, from + count)) : []
  }
}
