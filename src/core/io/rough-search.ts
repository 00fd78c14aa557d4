import { CAREFUL, MOST_PATIENCE, RETRY_AFTER_TASKS, median } from './level.ts'
import type { Sample } from './level.ts'
import { RateWindow } from './variation.ts'
import type { Variation } from './variation.ts'

/** Another level must give more by at least so much of what times differ, within these bounds. */
const SHARE = 0.4
const LEAST_GAIN = 0.03
const MOST_GAIN = 0.1
/** A level that gives less than this need not be looked at to the end; and less than that, not for long. */
const LESS = 0.85
const MUCH_LESS = 0.6
const SHORT = 8
/** With twice as many at one time, most take so much longer where they wait for each other. */
const CROWDED = 1.5
const LEAST_OF_MOST = 4
/** What this level gave before, and gives now: then the others are looked at again. */
const CHANGED = 2

/**
 * Looks for the number of tasks at one time that gets the most out of a device on which tasks take now long, now short.
 * There single tasks tell nothing: levels are compared by what the device gave over a while, and left only for one that
 * gives clearly more. It begins by doubling, as long as most tasks take no longer: more of them hide that some are held up.
 */
export class RoughSearch {
  at: number
  readonly #levels: readonly number[]
  readonly #variation: Variation
  readonly #isHasty: boolean
  readonly #window = new RateWindow()
  /** Bytes per millisecond of levels. */
  readonly #known: number[] = []
  /** It goes up, by what most tasks take: at this level, and at the one before. */
  #isNew: boolean
  #times: number[] = []
  #typical = 0
  /** The level from which it looks at others, what that gave, and steps that are still to be tried from there. */
  #home: number | null = null
  #homeRate = 0
  #untried: number[] = []
  #tasksUntilRetry = 0
  #chosenAt: number
  #isFull = false

  constructor(
    levels: readonly number[],
    variation: Variation,
    from: { at: number; now: number; isNew: boolean; isHasty: boolean },
  ) {
    this.#levels = levels
    this.#variation = variation
    this.at = from.at
    this.#chosenAt = from.now
    this.#isNew = from.isNew
    this.#isHasty = from.isHasty
  }

  get isSettled(): boolean {
    return this.#home === null && this.#tasksUntilRetry > 0
  }

  get isLooking(): boolean {
    return this.#home !== null || this.#isNew
  }

  get #limit(): number {
    return this.#levels[this.at] as number
  }

  get rate(): number {
    return this.#known[this.at] ?? 0
  }

  /** That others gave more is chance, unless they were taken for it. */
  rates(): { level: number; rate: number }[] {
    const most = this.rate > 0 ? this.rate * (1 - LEAST_GAIN) : Infinity
    return this.#known.flatMap((rate, i) =>
      rate > 0
        ? [{ level: this.#levels[i] as number, rate: i === this.at ? rate : Math.min(rate, most) }]
        : [],
    )
  }

  add({ began, ended, bytes, shared, isFed }: Sample): void {
    if (this.#isNew) return this.#goUp(began, (ended - began) / bytes, ended)
    const window = this.#window
    const isEnough = isFed || shared > this.#limit / 2
    if (!this.#isFull || !isEnough) {
      // What runs still began with another limit, or too few run.
      if (began < this.#chosenAt) return
      this.#isFull = isEnough
      window.begin(ended)
      return
    }
    window.add(ended, bytes, ended - began)
    if (window.rate > 0) this.#known[this.at] = window.rate
    if (this.#home === null) this.#stay(ended)
    else this.#compare(this.#home, ended)
  }

  #goUp(began: number, time: number, now: number): void {
    if (began < this.#chosenAt) return
    this.#times.push(time)
    if (this.#times.length < Math.max(LEAST_OF_MOST, this.#limit)) return
    const typical = median(this.#times)
    this.#known[this.at] = this.#limit / typical
    const isCrowded = this.#typical > 0 && typical > this.#typical * CROWDED
    const to = this.#within(this.at + (isCrowded ? -2 : 2))
    if (isCrowded || to === this.at) {
      this.#isNew = false
      if (this.#isHasty) this.#tasksUntilRetry = RETRY_AFTER_TASKS
    }
    this.#typical = typical
    this.#times = []
    this.#go(to, now)
  }

  get #tasksEnough(): number {
    return this.#variation.isGreat ? Math.max(24, 2 * this.#limit) : Math.max(12, this.#limit)
  }

  get #isEnough(): boolean {
    return this.#window.tasks >= this.#tasksEnough && this.#window.lasted(2)
  }

  #stay(now: number): void {
    if (!this.#isEnough) return
    const { rate, tasks } = this.#window
    if (this.#isHasty) this.#tasksUntilRetry = RETRY_AFTER_TASKS
    const change = this.#homeRate > 0 ? Math.max(rate / this.#homeRate, this.#homeRate / rate) : 1
    if (change > CHANGED) this.#tasksUntilRetry = 0
    if (this.#isHasty || tasks < this.#tasksUntilRetry) return
    this.#homeRate = rate
    // What was seen on the way up tells in which direction to look first.
    const below = this.#known[this.at + this.#down] ?? 0
    this.#untried = below > rate ? [this.#down, this.#up] : [this.#up, this.#down]
    this.#lookFurther(now)
  }

  get #up(): number {
    return this.#limit < CAREFUL ? 2 : 1
  }

  get #down(): number {
    return this.#limit <= CAREFUL ? -2 : -1
  }

  #lookFurther(now: number): void {
    const home = this.#home ?? this.at
    for (let step = this.#untried.shift(); step; step = this.#untried.shift()) {
      const to = this.#within(home + step)
      if (to === home) continue
      this.#home = home
      this.#go(to, now)
      return
    }
    this.#home = null
    this.#tasksUntilRetry = Math.min(Math.max(RETRY_AFTER_TASKS, this.#tasksUntilRetry * 2), MOST_PATIENCE)
    this.#go(home, now)
  }

  #compare(home: number, now: number): void {
    const { rate, tasks } = this.#window
    const gain = rate / this.#homeRate
    const isBad =
      this.#window.lasted(1) &&
      ((gain < MUCH_LESS && tasks >= SHORT) || (gain < LESS && tasks >= this.#tasksEnough / 2))
    if (!isBad && !this.#isEnough) return
    const worth = 1 + Math.min(MOST_GAIN, Math.max(LEAST_GAIN, SHARE * this.#variation.degree))
    if (gain > worth) {
      // It pays to go on the same way.
      this.#untried = [this.at > home ? this.#up : this.#down]
      this.#home = null
      this.#homeRate = rate
    }
    this.#lookFurther(now)
  }

  #within(level: number): number {
    return Math.min(this.#levels.length - 1, Math.max(0, level))
  }

  #go(to: number, now: number): void {
    this.at = this.#within(to)
    this.#chosenAt = now
    this.#isFull = false
  }
}
