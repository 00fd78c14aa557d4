import type { Task } from '../tasks/task.ts'
import type { Learning } from './learning.ts'

/** Milliseconds between two looks at a task; more once it has run for long. */
const EVERY = 10
const OF_ITS_TIME = 0.05
/** A rate counts once the file was seen to grow as often as this, and by this number of bytes: not while a header is written. */
const GROWTHS = 4
const LEAST_BYTES = 256 * 1024

/** A task whose file grows. */
interface Watched {
  readonly learning: Learning
  readonly since: number
  next: number
  growths: number
  /** What was there when it was first seen, and what is there now. */
  from: { at: number; bytes: number } | null
  bytes: number
}

/**
 * How fast the first tasks of a kind write, seen by the size of their files while they run. So a search that begins with
 * two tasks need not wait until one has ended to know that the device can serve many.
 */
export class Looks {
  readonly #watched = new Map<Task, Watched>()

  get any(): boolean {
    return this.#watched.size > 0
  }

  /** When the next look is due; infinite if none is. */
  get next(): number {
    let next = Infinity
    for (const watched of this.#watched.values()) next = Math.min(next, watched.next)
    return next
  }

  watch(task: Task, learning: Learning, now: number): void {
    const times = { since: now, next: now + EVERY }
    this.#watched.set(task, { learning, ...times, growths: 0, from: null, bytes: 0 })
  }

  drop(task: Task): void {
    if (this.#watched.size > 0) this.#watched.delete(task)
  }

  /** The tasks to look at now. */
  due(now: number): Task[] {
    const tasks: Task[] = []
    for (const [task, watched] of this.#watched) {
      if (!watched.learning.wantsRates) this.#watched.delete(task)
      else if (watched.next <= now) {
        watched.next = now + Math.max(EVERY, (now - watched.since) * OF_ITS_TIME)
        tasks.push(task)
      }
    }
    return tasks
  }

  /** The task has written this number of bytes. */
  seen(task: Task, bytes: number, now: number): void {
    const watched = this.#watched.get(task)
    if (!watched) return
    const { learning, from } = watched
    if (bytes > watched.bytes) {
      watched.bytes = bytes
      watched.growths++
      if (!from) watched.from = { at: now, bytes }
      else if (watched.growths >= GROWTHS && bytes - from.bytes >= LEAST_BYTES) {
        this.#watched.delete(task)
        learning.writesAt((bytes - from.bytes) / (now - from.at), now)
      }
    }
  }
}
