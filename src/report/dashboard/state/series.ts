/** Buckets kept per series. When time has filled them, pairs are joined. */
const KEPT = 512

/**
 * A value over time in a fixed number of buckets, however long the run is. Two kinds of input: `set` for a level that holds
 * until it changes (tasks running), `spread` for an amount that was moved within a span (bytes).
 */
export class Series {
  #width: number
  #sums = new Float64Array(KEPT)
  #last = 0
  #since = 0

  constructor(width = 100) {
    this.#width = width
  }

  /** The level is `value` from now on. */
  set(at: number, value: number): void {
    if (at > this.#since) {
      if (this.#last !== 0) this.spread(this.#since, at, this.#last * (at - this.#since))
      this.#since = at
    }
    this.#last = value
  }

  /** Adds an amount evenly over a span of time. */
  spread(from: number, to: number, amount: number): void {
    while (to > this.#width * KEPT) this.#join()
    const span = Math.max(to - from, 1e-6)
    const lastBucket = Math.min(KEPT - 1, Math.floor(to / this.#width))
    for (let i = Math.max(0, Math.floor(from / this.#width)); i <= lastBucket; i++) {
      const begin = Math.max(from, i * this.#width)
      const end = Math.min(from + span, (i + 1) * this.#width)
      this.#sums[i] = (this.#sums[i] ?? 0) + (amount * Math.max(0, end - begin)) / span
    }
  }

  /** Means per millisecond, up to a time; the last bucket counts the time that has passed of it. */
  points(until: number): { width: number; values: number[] } {
    this.set(Math.max(until, this.#since), this.#last)
    // Nothing was added for long: the time that passed is shown too.
    while (until > this.#width * KEPT) this.#join()
    const count = Math.max(1, Math.min(KEPT, Math.ceil(until / this.#width)))
    const values: number[] = []
    for (let i = 0; i < count; i++) {
      const width = Math.min(this.#width, Math.max(until - i * this.#width, 1e-3))
      values.push(short((this.#sums[i] ?? 0) / width))
    }
    return { width: this.#width, values }
  }

  #join(): void {
    const sums = new Float64Array(KEPT)
    for (let i = 0; i < KEPT; i++) sums[i >> 1] = (sums[i >> 1] ?? 0) + (this.#sums[i] ?? 0)
    this.#sums = sums
    this.#width *= 2
  }
}

/** Four digits are enough for a plot. */
const short = (value: number): number => (value === 0 ? 0 : Number(value.toPrecision(4)))
