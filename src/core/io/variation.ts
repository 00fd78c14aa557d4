/** Where times differ by so much on average, single tasks tell nothing; and by so little, that they do. */
const MUCH = 0.2
/** With few tasks there is no time to find out that they told nothing. */
const MUCH_FOR_FEW = 0.15
const LITTLE = 0.1
const LEAST_PAIRS = 3
const MOST_PAIRS = 16
/** Number of steady tasks after which variation is over. */
const CALM = 48

/** How much the times of tasks that end one after the other differ: 0 not at all, 1 altogether. */
export class Variation {
  degree = 0
  isGreat = false
  #last = 0
  #calm = 0
  readonly #much: number
  /** The first task of all is slow because nothing like it has run yet. */
  #isFirst: boolean
  readonly #differences: number[] = []

  constructor(isHasty: boolean) {
    this.#much = isHasty ? MUCH_FOR_FEW : MUCH
    this.#isFirst = !isHasty
  }

  /** What the task took, for each byte. */
  add(time: number): void {
    if (this.#isFirst) {
      this.#isFirst = false
      return
    }
    const before = this.#last
    this.#last = time
    if (before === 0) return
    const all = this.#differences
    all.push(Math.abs(time - before) / (time + before))
    if (all.length > MOST_PAIRS) all.shift()
    if (all.length < LEAST_PAIRS) return
    this.degree = all.reduce((sum, one) => sum + one, 0) / all.length
    this.isGreat = this.degree > (this.isGreat ? LITTLE : this.#much)
    this.#calm = this.isGreat ? 0 : this.#calm + 1
  }

  get isOver(): boolean {
    return this.#calm >= CALM
  }
}

const FORGETTING = 0.98

/**
 * What a device gave over a while, whichever tasks it held up meanwhile. A disk that stops for a tenth of a second
 * now and then lets most tasks through at once: only a window that is longer than that says what it gives.
 */
export class RateWindow {
  tasks = 0
  #longest = 0
  #begin = 0
  #end = 0
  #bytes = 0

  begin(at: number): void {
    this.#begin = this.#end = at
    this.#bytes = this.tasks = 0
  }

  add(ended: number, bytes: number, time: number): void {
    this.#longest = Math.max(this.#longest * FORGETTING, time)
    this.#end = ended
    this.#bytes += bytes
    this.tasks++
  }

  /** Bytes per millisecond; 0 if nothing is known. */
  get rate(): number {
    return this.#end > this.#begin ? this.#bytes / (this.#end - this.#begin) : 0
  }

  /** Whether it lasts this many times as long as its longest task. */
  lasted(times: number): boolean {
    return this.#end - this.#begin >= times * this.#longest
  }
}
