import type { Versions } from '../data/versions.ts'
import type { EngineParts, Readiness } from '../schedule/readiness.ts'
import type { Cancellations } from './cancellations.ts'
import { leave, miss } from './group.ts'
import type { Group } from './group.ts'
import { cancelledEvent } from './submission.ts'
import type { Task } from './task.ts'

/** What follows when a task ends: it gives back what it held, and what it was to make is settled. */
export class Endings {
  readonly #parts: EngineParts
  readonly #readiness: Readiness
  readonly #versions: Versions
  readonly #cancellations: Cancellations
  readonly #idle: (group: Group) => void

  constructor(parts: EngineParts, readiness: Readiness, versions: Versions, cancellations: Cancellations) {
    this.#parts = parts
    this.#readiness = readiness
    this.#versions = versions
    this.#cancellations = cancellations
    this.#idle = group => parts.instructions.push({ type: 'idle', group })
  }

  /** Gives back what the attempt held. `took` is negative if nothing of the attempt is kept. */
  release(task: Task, now: number, took = -1): void {
    const { io, placement } = this.#parts
    if (task.io) io.ended(task, took, now)
    if (task.state === 'blocked') placement.blocked.forget(task)
    else placement.release(task, now)
    placement.tokens.release(task)
    this.#readiness.wakeParked(task, now)
  }

  /** Settles what the task made and lets go of what it read. */
  end(task: Task, now: number): void {
    const isGood = task.state === 'done' || task.state === 'ignored'
    this.#readiness.releasedBy = task
    for (const { read, write } of task.accesses) {
      if (write) {
        if (isGood) this.#versions.made(task, write, now)
        else this.#versions.lose(task, write, now)
      }
      if (read) this.#versions.readerEnded(read, now)
      read?.growth?.followers.delete(task)
    }
    this.#readiness.releasedBy = null
    this.#leave(task)
  }

  /** A task that was `stopping` has stopped: what it was to make was settled before, but for memory that is written in place. */
  stopped(task: Task, now: number): void {
    task.expect('cancelled', ['stopping'])
    if (task.why?.kind === 'person') miss(task)
    this.release(task, now)
    const at = task.move('cancelled', now)
    this.#parts.observed.observer?.(cancelledEvent(task, at))
    for (const { read, write } of task.accesses) {
      if (write?.datum.inPlace) this.#versions.lose(task, write, now)
      if (read) this.#versions.readerEnded(read, now)
      read?.growth?.followers.delete(task)
    }
    this.#leave(task)
  }

  /** Cancels what is to be cancelled. Comes last in whatever happens. */
  cancelAll(now: number): void {
    const cancellations = this.#cancellations
    for (let one = cancellations.next(); one; one = cancellations.next()) {
      const { task, cause, why } = one
      if (task.ended || task.state === 'stopping') continue
      task.cause = cause
      task.why = why
      if (task.state === 'running' || task.state === 'blocked') this.#stopRunning(task, now)
      else this.#cancelWaiting(task, now)
    }
    this.#readiness.rethrow()
  }

  #cancelWaiting(task: Task, now: number): void {
    const wasReady = task.state === 'ready'
    if (wasReady && !this.#readiness.looks.end(task)) this.#parts.placement.forget(task)
    const at = task.move('cancelled', now)
    if (wasReady) this.#readiness.wakeParked(task, now)
    if (task.why?.kind === 'closed' || task.why?.kind === 'person') miss(task)
    this.#parts.observed.observer?.(cancelledEvent(task, at))
    this.end(task, now)
  }

  /**
   * What it was to make is settled now; its lane and its inputs stay held until it has really stopped. So
   * does memory that it writes in place: nothing may look at it before.
   */
  #stopRunning(task: Task, now: number): void {
    if (task.state === 'blocked') this.#parts.placement.blocked.drop(task)
    task.move('stopping', now)
    this.#parts.instructions.stop(task)
    for (const { write } of task.accesses) {
      if (write && !write.datum.inPlace) this.#versions.lose(task, write, now)
    }
  }

  #leave(task: Task): void {
    task.parent?.calls?.delete(task)
    this.#parts.io.bound?.ended(task)
    for (const { read, write } of task.accesses) (write ?? read)?.datum.users?.delete(task)
    leave(task, this.#idle)
  }
}
