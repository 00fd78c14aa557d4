import { LevelSearch } from './level-search.ts'
import { Alone, levelsBelow } from './level.ts'
import type { Rung, Trial } from './trials.ts'

/** What a measured task remembers. */
export interface Lesson {
  at: number
  area: number
}

/**
 * Learning without epochs: instead of a group of tasks for each bandwidth, one after the other, tasks come and go while the
 * limit is looked for. So nothing is spent on waiting for the last of a group, and it may go on until the limit is found.
 */
export class Learning {
  started = 0
  ended = 0
  readonly #search: LevelSearch
  readonly #rungs: ReadonlyMap<number, number>
  /** Integral of the number of running tasks over time. */
  #area = 0
  #updatedAt = 0
  readonly #alone = new Alone()

  /** With bounds, only what they allow is tried: `rungs` instead of all numbers of tasks. `isKnown`: `limit` is the device's bandwidth. */
  constructor(limit: number, executors: number, rungs: readonly Rung[] | null, usual = 0, isKnown = false) {
    const levels = rungs?.map(({ concurrency }) => concurrency) ?? levelsBelow(executors)
    const bandwidths = rungs?.map(({ bandwidth }) => bandwidth) ?? levels.map(level => limit / level)
    this.#rungs = new Map(levels.map((level, i) => [level, bandwidths[i] as number]))
    this.#search = new LevelSearch(
      [...this.#rungs.keys()].sort((a, b) => a - b),
      true,
      usual,
      isKnown ? limit / 1000 : null,
    )
  }

  /** Whether it would help to know how fast the tasks write that run now. */
  get wantsRates(): boolean {
    return this.#search.wantsRates
  }

  /** A task that is under way writes this number of bytes per millisecond. */
  writesAt(rate: number, now: number): void {
    this.#search.writesAt(rate, now)
  }

  get isOver(): boolean {
    return this.#search.isSettled
  }

  /** Tasks that may run at one time now. */
  get concurrency(): number {
    return this.#search.limit
  }

  get bandwidth(): number {
    return this.#rungs.get(this.concurrency) as number
  }

  begin(now: number): Lesson {
    this.#advance(now)
    this.started++
    return { at: now, area: this.#area }
  }

  /** `took` is not finite, or negative, if it says nothing. */
  end(lesson: Lesson, took: number, now: number, bytes = 0): void {
    this.#advance(now)
    // Others may have been heard of before that have ended later.
    const area = this.#area - (this.started - this.ended) * (this.#updatedAt - now)
    this.ended++
    const time = now - lesson.at
    if (!(took > 0 && took < Infinity) || time <= 0) return
    const shared = Math.max(1, (area - lesson.area) / time)
    const waited = shared * (1 - this.#alone.add(took) / took)
    this.#search.add({
      began: lesson.at,
      ended: now,
      took,
      bytes: 1,
      moved: bytes,
      shared,
      rate: shared / took,
      waited,
      isFed: false,
    })
  }

  #advance(now: number): void {
    this.#area += (this.started - this.ended) * Math.max(0, now - this.#updatedAt)
    this.#updatedAt = Math.max(now, this.#updatedAt)
  }

  /** What was learned so far. */
  trials(): Trial[] {
    return this.#search.rates().map(({ level, rate }) => ({
      bandwidth: this.#rungs.get(level) as number,
      concurrency: level,
      mean: level / rate,
    }))
  }
}
