import type { Version } from '../data/datum.ts'
import type { Task } from '../tasks/task.ts'

/**
 * When data were last written or read, counted in tasks that have ended: what was used last is probably still in
 * a cache. A task is as fresh as the input that has not been used for longest. Inputs that no task has used yet are
 * in no cache, and do not count.
 */
export class Recency {
  readonly #used = new WeakMap<Version, number>()
  #clock = 0

  /** A task has ended well. */
  used({ accesses }: Task): void {
    const now = ++this.#clock
    for (const { read, write } of accesses) {
      if (read) this.#used.set(read, now)
      if (write) this.#used.set(write, now)
    }
  }

  /** 0 when nothing that it reads has been used. */
  of({ accesses }: Task): number {
    let oldest = 0
    for (const { read } of accesses) {
      const used = (read && this.#used.get(read)) ?? 0
      if (used > 0 && (oldest === 0 || used < oldest)) oldest = used
    }
    return oldest
  }
}
