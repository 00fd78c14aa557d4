/** Number of rates in a row that differ this much before the device counts as changed. */
export const CHANGED = 0.2
export const IN_A_ROW = 4
/** Number of tasks after which the levels beside the best are tried; each failure doubles it. */
export const RETRY_AFTER_TASKS = 60
export const MOST_PATIENCE = 480
/** From this level on, up goes by small steps only. */
export const CAREFUL = 8
/** A level that takes many small steps to reach. */
export const LARGE_LEVEL = 4 * CAREFUL

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return ((sorted[(sorted.length - 1) >> 1] as number) + (sorted[sorted.length >> 1] as number)) / 2
}

/** Numbers of tasks at one time that are worth telling apart. */
export function levelsUpTo(most: number): number[] {
  const levels: number[] = []
  for (let base = 1; base <= most; base *= 2) {
    levels.push(base)
    if (base > 1 && base * 1.5 <= most) levels.push(base * 1.5)
  }
  if (levels.at(-1) !== most) levels.push(most)
  return levels
}

/** The same where there are few; above, so that what the paper tries is among them: the most, and its halves. */
export function levelsBelow(most: number): number[] {
  const levels = levelsUpTo(most).filter(level => level <= 2 * CAREFUL)
  for (let at = most; at > 2 * CAREFUL; at = Math.floor(at / 2)) {
    const between = Math.round(at / Math.SQRT2)
    levels.push(at, ...(between > 2 * CAREFUL ? [between] : []))
  }
  return levels.sort((a, b) => a - b)
}

/** What one task tells about the device. */
export interface Sample {
  began: number
  ended: number
  /** What the task itself took, which does not wait for a thread that has to begin first. */
  took: number
  /** Tasks with which it shared the device on average, itself among them. */
  shared: number
  bytes: number
  /** Bytes that it moved, where `bytes` counts tasks; 0 or nothing if that is not known. */
  moved?: number
  /** Bytes per millisecond that all of them were given. */
  rate: number
  /** How many of them waited for others. */
  waited: number
  /** More tasks were waiting to start: as many ran as could, however long it took to start the next one. */
  isFed: boolean
}

/** What the device gave at a level, in bytes per millisecond. One task that was held up must not count for much. */
export class Level {
  readonly #rates: number[] = []
  readonly #first: number[] = []
  rate = 0

  add(rate: number): void {
    this.#rates.push(rate)
    if (this.#rates.length > 2 * IN_A_ROW) this.#rates.shift()
    this.rate = median(this.#rates)
  }

  /** From a task that began together with others: it has to do while there is nothing better. */
  addFirst(rate: number): void {
    if (this.#rates.length > 0) return
    this.#first.push(rate)
    this.rate = median(this.#first)
  }

  /** The last few lie on one side of those before, and so far from them. */
  change(far: number): 'slower' | 'faster' | null {
    if (this.#rates.length < 2 * IN_A_ROW) return null
    const before = median(this.#rates.slice(0, IN_A_ROW))
    const last = this.#rates.slice(IN_A_ROW)
    if (last.every(rate => rate < before * (1 - far))) return 'slower'
    return last.every(rate => rate > before * (1 + far)) ? 'faster' : null
  }

  /** Only the last few still hold. */
  forgetOld(): void {
    this.#rates.splice(0, IN_A_ROW)
    this.rate = median(this.#rates)
  }
}

/** The least time of long ago counts less and less: the device may have become slower. */
const FORGETTING = 1.0005
const LUCKY = 0.8

/** How long a task takes that has the device for itself: what several in a row took at best, as one can be lucky. */
export class Alone {
  #least = Infinity
  readonly #last: number[] = []

  /** Tells of a task, and gives what is known with it. */
  add(time: number): number {
    this.#last.push(time)
    if (this.#last.length > IN_A_ROW) this.#last.shift()
    // So much luck twice in a row is none.
    const isFaster = this.#last.length > 2 && this.#last.slice(-2).every(one => one < this.#least * LUCKY)
    if (isFaster) this.#last.splice(0, this.#last.length - 2)
    this.#least = Math.min(this.#least * FORGETTING, median(this.#last))
    return this.#least
  }

  forget(): void {
    this.#least = Infinity
    this.#last.length = 0
  }
}
