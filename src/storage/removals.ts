import { rm } from 'node:fs/promises'
import type { Version } from '../core/data/datum.ts'

/** A path that is being removed. */
export interface Removal {
  /** The version that was there. */
  readonly last: Version | null
  readonly done: Promise<void>
}

/** Paths that the program removes. What is written there by tasks that were called later comes after that. */
export class Removals {
  readonly #byPath = new Map<string, Removal>()

  /** The one that goes on at this path. */
  at(path: string): Removal | undefined {
    return this.#byPath.get(path)
  }

  /** Deletes what is at the path, after `gone`. */
  async remove(path: string, last: Version | null, gone: Promise<void>): Promise<void> {
    const before = this.#byPath.get(path)?.done
    const removed = Promise.all([before, gone]).then(() => rm(path, { recursive: true, force: true }))
    const done = removed.then(
      () => undefined,
      () => undefined,
    )
    const removal = { last, done }
    this.#byPath.set(path, removal)
    await done
    if (this.#byPath.get(path) === removal) this.#byPath.delete(path)
    await removed
  }
}
