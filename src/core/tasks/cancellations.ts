import type { Placement } from '../schedule/placement.ts'
import { members, refusalOf } from './group.ts'
import type { Group, Refusal } from './group.ts'
import type { Task } from './task.ts'
import type { CancelWhy, ClosedBy } from '../why.ts'

export interface Cancellation {
  readonly task: Task
  readonly cause: Task | null
  readonly why: CancelWhy
}

/** Tasks that are to be cancelled, and which new ones are refused. */
export class Cancellations {
  readonly #placement: Placement
  /** A list, because a chain can be longer than the stack is deep. */
  readonly #list: Cancellation[] = []
  #closed: CancelWhy | null = null

  constructor(placement: Placement) {
    this.#placement = placement
  }

  /** Nothing new starts. */
  get isClosed(): boolean {
    return this.#closed !== null
  }

  close(by: ClosedBy): CancelWhy {
    return (this.#closed = { kind: 'closed', by })
  }

  add(task: Task, cause: Task | null, why: CancelWhy): void {
    this.#list.push({ task, cause, why })
  }

  next(): Cancellation | undefined {
    return this.#list.pop()
  }

  /** The failure cancels all members of its group that have not started. */
  failGroup(group: Group, failure: Task): void {
    group.failure ??= failure
    this.addUnstarted(group, failure, { kind: 'failed', task: failure.title })
  }

  addUnstarted(group: Group, cause: Task | null, why: CancelWhy): void {
    for (const task of members(group)) {
      if (task.state === 'waiting' || task.state === 'ready' || task.state === 'parked') {
        this.add(task, cause, why)
      } else if (task.state === 'running' && task.queueable) this.#placement.lanes.cancel(task)
    }
  }

  /** Cancels a task that comes to the queue, for the first time or again, if its group takes none. Returns whether it does. */
  addIfRefused(task: Task): boolean {
    const refusal = this.#refusal(task.group)
    if (refusal) this.add(task, refusal.cause, refusal.why)
    return refusal !== null
  }

  #refusal(group: Group): Refusal | null {
    return this.#closed === null ? refusalOf(group) : { cause: null, why: this.#closed }
  }
}
