/** Number of intervals kept apart; what arrives later than these is not counted. */
const KEPT = 1024

/**
 * How much time lies in at least one of many intervals, which may overlap and come out of order: threads
 * report in batches, so what ran on one of them is reported before what ran at the same time on another.
 */
export class BusyIntervals {
  /** Apart from each other, in order of time. */
  #starts: number[] = []
  #ends: number[] = []
  /** Time in those that are no longer kept, and where the last of them ended. */
  #before = 0
  #closedAt = -Infinity

  add(from: number, to: number): void {
    const starts = this.#starts
    const ends = this.#ends
    let start = Math.max(from, this.#closedAt)
    let end = to
    if (end <= start) return
    // Those in [first, last) touch it. Nearly always it is the last one, or none.
    let last = ends.length
    while (last > 0 && (starts[last - 1] as number) > end) last--
    let first = last
    while (first > 0 && (ends[first - 1] as number) >= start) first--
    if (first < last) {
      start = Math.min(start, starts[first] as number)
      end = Math.max(end, ends[last - 1] as number)
    }
    if (last - first === 1) {
      starts[first] = start
      ends[first] = end
    } else {
      starts.splice(first, last - first, start)
      ends.splice(first, last - first, end)
    }
  }

  /** It is time to `close` old ones. */
  get isFull(): boolean {
    return this.#starts.length >= 2 * KEPT
  }

  /** Keeps only the sum of old ones. What has begun before and lasts still is to be added first. */
  close(): void {
    const many = Math.max(0, this.#starts.length - KEPT)
    if (many === 0) return
    this.#closedAt = this.#ends[many - 1] as number
    for (let i = 0; i < many; i++) this.#before += (this.#ends[i] as number) - (this.#starts[i] as number)
    this.#starts = this.#starts.slice(many)
    this.#ends = this.#ends.slice(many)
  }

  /** The time in all of them, and in one more that lasts still. */
  totalWith(from: number, to: number): number {
    const start = Math.max(from, this.#closedAt)
    let sum = this.#before + Math.max(0, to - start)
    for (let i = 0; i < this.#starts.length; i++) {
      const begin = this.#starts[i] as number
      const end = this.#ends[i] as number
      sum += end - begin - Math.max(0, Math.min(end, to) - Math.max(begin, start))
    }
    return sum
  }
}
