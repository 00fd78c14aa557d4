/**
 * Bytes that are taken and given back by tasks that run one after another: for each position what is taken at its
 * begin and given back at its end. Answers in logarithmic time how high the sum gets before some position.
 */
export class Profile {
  #size = 64
  /** Position of the first leaf; what was before it is over. */
  #offset = 0
  #sums = new Float64Array(2 * this.#size)
  #peaks = new Float64Array(2 * this.#size).fill(-Infinity)

  /** At this position `taken` bytes are taken, and `given` are given back after it. */
  set(position: number, taken: number, given: number): void {
    while (position - this.#offset >= this.#size) this.#grow()
    this.#put(this.#size + position - this.#offset, taken - given, taken)
  }

  clear(position: number): void {
    if (position >= this.#offset) this.#put(this.#size + position - this.#offset, 0, -Infinity)
  }

  #put(leaf: number, sum: number, peak: number): void {
    const sums = this.#sums
    const peaks = this.#peaks
    sums[leaf] = sum
    peaks[leaf] = peak
    for (let at = leaf >> 1; at > 0; at >>= 1) {
      const left = 2 * at
      sums[at] = (sums[left] as number) + (sums[left + 1] as number)
      peaks[at] = Math.max(peaks[left] as number, (sums[left] as number) + (peaks[left + 1] as number))
    }
  }

  /** The highest sum at any position before this one; -Infinity if there is none. */
  peakBefore(position: number): number {
    const end = Math.min(position - this.#offset, this.#size)
    let sum = 0
    let peak = -Infinity
    let node = 1
    let width = this.#size
    let left = end
    // From the left: a whole subtree at a time.
    while (left > 0) {
      if (left >= width) return Math.max(peak, sum + (this.#peaks[node] as number))
      width /= 2
      node *= 2
      if (left >= width) {
        peak = Math.max(peak, sum + (this.#peaks[node] as number))
        sum += this.#sums[node] as number
        left -= width
        node++
      }
    }
    return peak
  }

  /** Makes room at the end: by leaving out what is over at the begin, or by doubling. */
  #grow(): void {
    const sums = this.#sums
    const peaks = this.#peaks
    const size = this.#size
    let first = 0
    while (first < size && peaks[size + first] === -Infinity) first++
    const isHalfEmpty = first >= size / 2
    this.#size = isHalfEmpty ? size : size * 2
    const skip = isHalfEmpty ? first : 0
    this.#offset += skip
    this.#sums = new Float64Array(2 * this.#size)
    this.#peaks = new Float64Array(2 * this.#size).fill(-Infinity)
    for (let i = skip; i < size; i++) {
      if (peaks[size + i] === -Infinity) continue
      this.#put(this.#size + i - skip, sums[size + i] as number, peaks[size + i] as number)
    }
  }
}
