/** What is lost to rounding when a bandwidth is divided and the parts are added up again. */
const ROUNDING = 1e-12

/** Bandwidth of one direction, in bytes per second: given out to tasks and taken back. */
export class Budget {
  /** Infinite when unknown: then nothing can be over-allocated. */
  limit: number
  used = 0
  #holders = 0

  constructor(limit: number | null | undefined) {
    this.limit = limit ?? Infinity
  }

  get free(): number {
    return Math.max(0, this.limit - this.used)
  }

  /** The most that fits. */
  get spare(): number {
    return this.limit * (1 + ROUNDING) - this.used
  }

  fits(amount: number): boolean {
    return amount <= this.spare
  }

  take(amount: number): void {
    if (amount === 0) return
    this.used += amount
    this.#holders++
  }

  give(amount: number): void {
    if (amount === 0) return
    // Sums of fractions do not come back to zero by themselves.
    this.used = --this.#holders === 0 ? 0 : this.used - amount
  }
}
