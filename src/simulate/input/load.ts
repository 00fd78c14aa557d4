/** An interval of time, in milliseconds. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** How much goes on at one time: of many overlapping intervals, the mean sum of weights over each of them. */
export class Load {
  readonly #times: number[]
  /** Where each interval begins and ends among the times. */
  readonly #begins: number[]
  readonly #ends: number[]
  readonly #spans: readonly Span[]

  constructor(spans: readonly Span[]) {
    this.#spans = spans
    this.#times = [...new Set(spans.flatMap(({ from, to }) => [from, to]))].sort((a, b) => a - b)
    const index = new Map(this.#times.map((time, i) => [time, i]))
    this.#begins = spans.map(({ from }) => index.get(from) as number)
    this.#ends = spans.map(({ to }) => index.get(to) as number)
  }

  /** Costs one pass over the intervals, however they overlap. */
  means(weights: readonly number[]): number[] {
    const times = this.#times
    const change = new Float64Array(times.length + 1)
    weights.forEach((weight, i) => {
      change[this.#begins[i] as number]! += weight
      change[this.#ends[i] as number]! -= weight
    })
    const integral = new Float64Array(times.length)
    let level = 0
    for (let i = 1; i < times.length; i++) {
      level += change[i - 1] as number
      integral[i] = integral[i - 1]! + level * (times[i]! - times[i - 1]!)
    }
    return this.#spans.map(({ from, to }, i) => {
      if (to <= from) return weights[i] as number
      return (integral[this.#ends[i] as number]! - integral[this.#begins[i] as number]!) / (to - from)
    })
  }
}
