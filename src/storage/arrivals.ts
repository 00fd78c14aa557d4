import type { Version } from '../core/data.ts'
import type { Going } from './mover.ts'

interface Arrival {
  done: Promise<boolean>
  hurry: () => void
}

/** Versions that are on their way to their places, with time: whoever cannot wait for one does not copy it once more. */
export class Arrivals {
  readonly #coming = new Map<Version, Arrival>()

  async begin(
    version: Version,
    isWanted: () => boolean,
    bring: (going: Going) => Promise<boolean>,
  ): Promise<boolean> {
    let isUrgent = false
    const done = bring({ isWanted, isUrgent: () => isUrgent })
    this.#coming.set(version, { done, hurry: () => (isUrgent = true) })
    return done.finally(() => this.#coming.delete(version))
  }

  /** Lets it come at full speed; false if it was not on its way, or did not get there. */
  async hurry(version: Version): Promise<boolean> {
    const coming = this.#coming.get(version)
    coming?.hurry()
    return (await coming?.done.catch(() => false)) ?? false
  }
}
