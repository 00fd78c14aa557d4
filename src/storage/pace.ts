/** How often someone who pauses looks whether it may go on, and the longest nap for a slow pace; milliseconds. */
const NAP = 25

/** How fast copies may go that share it. */
export interface Pace {
  /** They need not ask. */
  readonly isFree: boolean
  /** Waits until these bytes may be copied, or `mayGo` says that they must be; what it throws ends the copy. */
  allow(bytes: number, mayGo: () => boolean): Promise<void>
}

export const FULL_SPEED: Pace = { isFree: true, allow: () => Promise.resolve() }

/**
 * Bytes per second for all that share it: what one does not use, since it waits for its device, others may. The rate
 * may change at any time, also to 0, which is a pause.
 */
export class SharedPace implements Pace {
  readonly #rate: () => number
  /** Bytes that were copied, and that there has not been time for yet; below zero after a pause. */
  #debt = 0
  #settledAt = performance.now()

  constructor(rate: () => number) {
    this.#rate = rate
  }

  get isFree(): boolean {
    return this.#rate() === Infinity
  }

  async allow(bytes: number, mayGo: () => boolean): Promise<void> {
    for (;;) {
      const rate = this.#settle()
      if (mayGo() || rate === Infinity || (rate > 0 && this.#debt <= 0)) break
      const needed = rate > 0 ? (this.#debt / rate) * 1000 : NAP
      await new Promise(resolve => setTimeout(resolve, Math.min(NAP, needed)))
    }
    this.#debt += bytes
  }

  #settle(): number {
    const rate = this.#rate()
    const now = performance.now()
    const passed = now - this.#settledAt
    this.#settledAt = now
    // A copy may not save up more than one wake-up takes.
    this.#debt = rate === Infinity ? 0 : Math.max((-rate * NAP) / 1000, this.#debt - (rate * passed) / 1000)
    return rate
  }
}
