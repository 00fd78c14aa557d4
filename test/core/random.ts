/** A small seeded generator, so that a run of the fake machine can be repeated from its program alone. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  /** A whole number in [0, below). */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }
}
