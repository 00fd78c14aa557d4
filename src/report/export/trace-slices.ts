import type { RunEvent, TaskUsage } from '../../core/events.ts'
import { labelOf } from '../label.ts'
import { Heap } from '../../general/heap.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

export type SliceOutcome = 'ok' | 'failed' | 'blocked' | 'cancelled' | 'returned' | 'unfinished'

/** An interval during which one attempt of a task held one lane. Times are nanoseconds. */
export interface Slice {
  start: number
  end: number
  node: number
  lane: number
  task: TracedTask
  attempt: number
  implementation: string | undefined
  outcome: SliceOutcome
  detail: string | undefined
  usage: TaskUsage | undefined
  /** The first slice of a task is where the arrows of its inputs end. */
  isFirst: boolean
}

/** What is known of a task from its submission until it ends. */
export interface TracedTask {
  id: number
  kind: number
  group: string | null
  label: string
  reads: readonly number[]
  writes: readonly number[]
  state: 'waiting' | 'ready' | 'running' | 'blocked'
  /** Of its latest attempt; 0 before the first. */
  attempt: number
  implementation: string | undefined
  open: Slice | null
}

/**
 * Slices ready to be written are held back until this many are at hand, and leave in order of their ends:
 * events step back in time by up to a batch, and a lane must be drawn in its own order.
 */
const HELD_BACK = 16_384

export function nanos(ms: number): number {
  return Math.round(ms * 1e6)
}

/** Follows every task through its states and cuts its time into slices that never overlap on one lane. */
export class Slicer {
  readonly tasks = new Map<number, TracedTask>()
  waiting = 0
  ready = 0
  running = 0
  latest = 0

  readonly #emit: (slice: Slice) => void
  readonly #held = new Heap<Slice>(isBefore)
  readonly #laneEnds = new Map<string, number>()

  constructor(emit: (slice: Slice) => void) {
    this.#emit = emit
  }

  observe(event: RunEvent): void {
    this.latest = Math.max(this.latest, nanos(event.at))
    switch (event.type) {
      case 'submitted': {
        const { task: id, kind, group, reads, writes } = event
        const label = labelOf(event)
        const fresh = { state: 'waiting', attempt: 0, implementation: undefined, open: null } as const
        this.tasks.set(id, { id, kind, group, label, reads, writes, ...fresh })
        this.waiting++
        break
      }
      case 'ready':
        this.#move(event.task, 'ready')
        break
      case 'started':
        this.#start(event)
        break
      case 'resumed':
        this.#resume(event)
        break
      case 'blocked':
        this.#cut(event.task, event.at, 'blocked', event.reason)
        this.#move(event.task, 'blocked')
        break
      case 'finished':
        this.#cut(event.task, event.at, 'ok', undefined, event.usage)
        this.#end(event.task)
        break
      case 'failed':
        this.#cut(
          event.task,
          event.at,
          'failed',
          `${event.failure.name}: ${event.failure.message}`,
          event.usage,
        )
        if (event.next === 'retry') this.#move(event.task, 'ready')
        else this.#end(event.task)
        break
      case 'kept':
        this.#end(event.task)
        break
      case 'cancelled':
        this.#cut(event.task, event.at, 'cancelled', event.reason)
        this.#end(event.task)
        break
      case 'returned':
        this.#cut(event.task, event.at, 'returned', event.reason)
        this.#move(event.task, 'ready')
        break
      default:
        break
    }
  }

  /** Closes what is still open, as the journal of a killed run leaves it, and lets everything go. */
  finish(): void {
    for (const { id, open } of this.tasks.values()) {
      if (open) this.#cut(id, this.latest / 1e6, 'unfinished')
    }
    for (let slice = this.#held.pop(); slice; slice = this.#held.pop()) this.#release(slice)
  }

  #start(event: Of<'started'>): void {
    const task = this.#move(event.task, 'running')
    if (!task) return
    const isFirst = task.attempt === 0
    task.attempt = event.attempt
    task.implementation = event.implementation
    this.#open(task, event, isFirst)
  }

  #resume(event: Of<'resumed'>): void {
    if (this.tasks.get(event.task)?.state !== 'blocked') return
    const task = this.#move(event.task, 'running')
    if (task) this.#open(task, event, false)
  }

  #open(task: TracedTask, { at, node, lane }: Of<'started' | 'resumed'>, isFirst: boolean): void {
    const { attempt, implementation } = task
    const start = nanos(at)
    const ending = { end: start, outcome: 'unfinished', detail: undefined, usage: undefined } as const
    task.open = { start, node, lane, task, attempt, implementation, isFirst, ...ending }
  }

  #cut(id: number, at: number, outcome: SliceOutcome, detail?: string, usage?: TaskUsage): void {
    const task = this.tasks.get(id)
    const slice = task?.open
    if (!task || !slice) return
    task.open = null
    slice.end = Math.max(slice.start, nanos(at))
    slice.outcome = outcome
    slice.detail = detail
    slice.usage = usage
    this.#held.push(slice)
    if (this.#held.size > HELD_BACK) this.#release(this.#held.pop()!)
  }

  /** Even if the times of two tasks on a lane overlap, what is drawn does not. */
  #release(slice: Slice): void {
    const key = `${slice.node}/${slice.lane}`
    const free = this.#laneEnds.get(key) ?? 0
    slice.start = Math.max(slice.start, free)
    // At least a nanosecond, or arrows would have nothing to hold on to.
    slice.end = Math.max(slice.end, slice.start + 1)
    this.#laneEnds.set(key, slice.end)
    this.#emit(slice)
  }

  #move(id: number, state: TracedTask['state']): TracedTask | undefined {
    const task = this.tasks.get(id)
    if (!task) return undefined
    this.#count(task.state, -1)
    task.state = state
    this.#count(state, 1)
    return task
  }

  #end(id: number): void {
    const task = this.tasks.get(id)
    if (!task) return
    this.#count(task.state, -1)
    this.tasks.delete(id)
  }

  #count(state: TracedTask['state'], by: number): void {
    if (state !== 'blocked') this[state] += by
  }
}

function isBefore(a: Slice, b: Slice): boolean {
  if (a.end !== b.end) return a.end < b.end
  if (a.start !== b.start) return a.start < b.start
  return a.task.id < b.task.id
}
