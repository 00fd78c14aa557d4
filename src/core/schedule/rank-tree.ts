/**
 * How many ready tasks there are of each rank, and how ranks weigh in a random choice: a tree of sums over
 * ranks, so that each question costs the logarithm of the highest rank and not the number of ranks.
 */
export class RankTree {
  /** A power of two; leaf of rank r is at `#leaves + r`. */
  #leaves = 8
  #counts = new Float64Array(16)
  /** Sums over ranks that have tasks: of known weights, and of how many have none. */
  #known = new Float64Array(16)
  #unknown = new Float64Array(16)
  #weights = new Float64Array(8)

  /** Ready tasks of all ranks. */
  get size(): number {
    return this.#counts[1] as number
  }

  count(rank: number): number {
    return rank < this.#leaves ? (this.#counts[this.#leaves + rank] as number) : 0
  }

  /** The highest rank that has tasks; -1 when none has. */
  get highest(): number {
    if (this.size === 0) return -1
    let at = 1
    while (at < this.#leaves) {
      at = 2 * at + 1
      if (this.#counts[at] === 0) at--
    }
    return at - this.#leaves
  }

  add(rank: number, count: number): void {
    while (rank >= this.#leaves) this.#grow()
    for (let at = this.#leaves + rank; at > 0; at >>= 1)
      this.#counts[at] = (this.#counts[at] as number) + count
    this.#weigh(rank)
  }

  setWeight(rank: number, weight: number): void {
    while (rank >= this.#leaves) this.#grow()
    this.#weights[rank] = weight
    this.#weigh(rank)
  }

  /** A rank that has tasks, by `random` in [0, 1); ranks without a weight have the `usual` one. -1: none. */
  pick(random: number, usual: number): number {
    if (this.size === 0) return -1
    let left = random * this.#sum(1, usual)
    let at = 1
    while (at < this.#leaves) {
      at = 2 * at
      const low = this.#sum(at, usual)
      // Rounding must not lead to where nothing is.
      if (this.#counts[at] === 0 || (left >= low && (this.#counts[at + 1] as number) > 0)) {
        left -= low
        at++
      }
    }
    return at - this.#leaves
  }

  #sum(at: number, usual: number): number {
    return (this.#known[at] as number) + (this.#unknown[at] as number) * usual
  }

  /** Sums are made anew on the way up instead of changed: small errors would add up over millions of tasks. */
  #weigh(rank: number): void {
    let at = this.#leaves + rank
    const isThere = (this.#counts[at] as number) > 0
    const weight = this.#weights[rank] as number
    const known = isThere ? weight : 0
    const unknown = isThere && weight === 0 ? 1 : 0
    if (this.#known[at] === known && this.#unknown[at] === unknown) return
    this.#known[at] = known
    this.#unknown[at] = unknown
    for (at >>= 1; at > 0; at >>= 1) this.#join(at)
  }

  #join(at: number): void {
    for (const sums of [this.#known, this.#unknown]) {
      sums[at] = (sums[2 * at] as number) + (sums[2 * at + 1] as number)
    }
  }

  #grow(): void {
    const [counts, weights, leaves] = [this.#counts, this.#weights, this.#leaves]
    this.#leaves = leaves * 2
    this.#counts = new Float64Array(leaves * 4)
    this.#known = new Float64Array(leaves * 4)
    this.#unknown = new Float64Array(leaves * 4)
    this.#weights = new Float64Array(leaves * 2)
    this.#weights.set(weights)
    for (let rank = 0; rank < leaves; rank++) {
      const count = counts[leaves + rank] as number
      if (count > 0) this.add(rank, count)
    }
  }
}
