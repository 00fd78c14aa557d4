/** Buckets per factor of ten, and the shortest time that is distinguished, in milliseconds. */
const PER_DECADE = 8
const SHORTEST = 0.001
const BUCKET_COUNT = PER_DECADE * 11

/** How long the attempts of a kind took: mean, spread, and a histogram whose buckets grow by a constant factor. */
export class Durations {
  count = 0
  mean = 0
  #squares = 0
  least = Infinity
  most = 0
  readonly buckets = new Uint32Array(BUCKET_COUNT)

  add(ms: number): void {
    this.count++
    const away = ms - this.mean
    this.mean += away / this.count
    this.#squares += away * (ms - this.mean)
    this.least = Math.min(this.least, ms)
    this.most = Math.max(this.most, ms)
    const at = bucketOf(ms)
    this.buckets[at] = (this.buckets[at] ?? 0) + 1
  }

  /** Standard deviation of the sample. */
  get deviation(): number {
    return this.count > 1 ? Math.sqrt(this.#squares / (this.count - 1)) : 0
  }

  /** About the time below which this share of the attempts stayed. */
  quantile(share: number): number {
    let left = share * this.count
    for (let i = 0; i < BUCKET_COUNT; i++) {
      left -= this.buckets[i] ?? 0
      if (left <= 0 && this.count > 0) return Math.min(this.most, Math.max(this.least, bucketMiddle(i)))
    }
    return this.most
  }

  /** The part of the histogram that is in use: where it begins, and the counts. */
  histogram(): { from: number; counts: number[] } {
    let first = 0
    let last = BUCKET_COUNT - 1
    while (first < last && this.buckets[first] === 0) first++
    while (last > first && this.buckets[last] === 0) last--
    return { from: first, counts: Array.from(this.buckets.subarray(first, last + 1)) }
  }
}

const bucketOf = (ms: number): number =>
  Math.max(
    0,
    Math.min(BUCKET_COUNT - 1, Math.floor(Math.log10(Math.max(ms, SHORTEST) / SHORTEST) * PER_DECADE)),
  )

export const bucketStart = (index: number): number => SHORTEST * 10 ** (index / PER_DECADE)
const bucketMiddle = (index: number): number => bucketStart(index + 0.5)

/** What kinds pass to each other: the graph of tasks, collapsed. */
export class KindEdges {
  readonly #edges = new Map<string, { from: number; to: number; count: number }>()

  add(from: number, to: number): void {
    const key = `${from}>${to}`
    const edge = this.#edges.get(key)
    if (edge) edge.count++
    else this.#edges.set(key, { from, to, count: 1 })
  }

  all(): { from: number; to: number; count: number }[] {
    return [...this.#edges.values()]
  }
}
