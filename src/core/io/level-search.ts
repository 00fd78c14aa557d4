import {
  CAREFUL,
  CHANGED,
  IN_A_ROW,
  Level,
  LARGE_LEVEL,
  MOST_PATIENCE,
  RETRY_AFTER_TASKS,
  median,
} from './level.ts'
import type { Sample } from './level.ts'
import { RoughSearch } from './rough-search.ts'
import { Variation } from './variation.ts'

/** A higher level has to give so much more to be worth it, and a lower one must not lose more than this. */
const WORTH = 1.02
const NO_LOSS = 0.99
/** Number of tasks after which the levels beside the best are tried for the first time. */
const FIRST_PATIENCE = 12
/** Number of waiting tasks of a well-used device; with fewer it has time left, with more it is crowded. */
const FEW_WAIT = 0.3
const FEW_WAIT_OF_MANY = 0.05
const SOME_WAIT = 1
const GOOD_WAIT = 1.5
const MANY_WAIT = 4

/** Rates count as changed only if that is so much more than times differ anyway. */
const OF_VARIATION = 3

/** Tasks with which it begins. */
const FIRST = 2

/**
 * Looks for the number of tasks at one time that gets the most out of a device.
 *
 * Two things are known of a level. How many tasks wait for others shows after two or three tasks, and says when the
 * device has time left or is crowded; so a limit that is far off is found soon. Which of two levels beside each other
 * gives more takes longer to see, and is looked at from time to time.
 */
export class LevelSearch {
  readonly #levels: readonly number[]
  readonly #isHasty: boolean
  #known: Level[] = []
  #at: number
  /** The level from which it came here to look, while it looks. */
  #from: number | null = null
  #fromWait = 0
  /** Steps that are still to be tried from the best level, and whether all of them will have been. */
  #untried: number[] = []
  #isRound = false
  #patience = FIRST_PATIENCE
  #hasBegun = false
  /** No level is known yet: steps are large. */
  #isNew = true
  /** When this level was chosen, and when the first of the tasks that began since then has ended. */
  #chosenAt = 0
  #steadyAt: number | null = null
  /** Tasks that were measured at this level since then: those that began together, and those after them. */
  #seenFirst = 0
  #seen = 0
  /** How many tasks waited, by each of the last few. */
  #waits: number[] = []
  /** Bounds of waiting beyond which something is done: wider where it was done in vain. */
  #fewWait = Infinity
  #manyWait = MANY_WAIT

  /** The rate of this level when it was last compared with those beside it; 0 if it has not been. */
  #expected = 0

  readonly #variation: Variation
  /** Looks instead of this while single tasks tell nothing. */
  #rough: RoughSearch | null = null

  /** How often the device has become slower: then the time of a task that is alone is not known any more. */
  slower = 0

  /** Bytes per millisecond that the description gives for the device; null without one. */
  readonly #bandwidth: number | null
  /** How many tasks like the first ones, which were hardly disturbed, use all of that; 0 if it is not known. */
  #fills = 0
  /** Rates of tasks under way by which that is known. */
  #rates = 0

  /**
   * `levels` upwards; `isHasty`: there are few tasks to find out with; `usual`: the number at one time to begin with. Where the
   * bandwidth is known it begins with few, which show how many of them the device can serve.
   */
  constructor(levels: readonly number[], isHasty = false, usual = FIRST, bandwidth: number | null = null) {
    this.#bandwidth = bandwidth
    this.#levels = levels
    this.#isHasty = isHasty
    this.#variation = new Variation(isHasty)
    if (isHasty) this.#patience = IN_A_ROW
    this.#hasBegun = usual > FIRST && bandwidth === null
    this.#at = this.#nearest(this.#hasBegun ? usual : FIRST)
  }

  /** Whether it would help to know how fast the first tasks write before one has ended. */
  get wantsRates(): boolean {
    return !this.#hasBegun && this.#bandwidth !== null && this.#rates < FIRST
  }

  /** A task that shares the device with few writes this number of bytes per millisecond. */
  writesAt(rate: number, now: number): void {
    if (!this.wantsRates || this.#bandwidth === null) return
    const fills = this.#bandwidth / rate
    this.#fills = this.#rates === 0 ? fills : Math.min(this.#fills, fills)
    if (++this.#rates < Math.min(FIRST, this.limit)) return
    if (this.#fills < LARGE_LEVEL) return
    this.#hasBegun = true
    this.#isNew = false
    this.#go(this.#nearest(this.#fills), now)
  }

  /** It has found a level, and has looked at those beside it. */
  get isSettled(): boolean {
    if (this.#rough) return this.#rough.isSettled
    return this.#from === null && this.#patience >= RETRY_AFTER_TASKS
  }

  /** It is at this level only to see what it gives, or because nothing is known yet. */
  get isLooking(): boolean {
    if (this.#rough) return this.#rough.isLooking
    return this.#from !== null || this.#isNew
  }

  /** What is known of levels: bytes per millisecond. */
  rates(): { level: number; rate: number }[] {
    if (this.#rough) return this.#rough.rates()
    const found: { level: number; rate: number }[] = []
    this.#known.forEach(({ rate }, i) => {
      if (rate > 0) found.push({ level: this.#levels[i] as number, rate })
    })
    const [level, from] = [this.limit, this.#from]
    if (this.rate > 0 || from === null || !this.#isNew || level > CAREFUL) return found
    // On its way up, because no task waited: so tasks take no longer here. Of many that is not certain.
    found.push({ level, rate: (this.#rateAt(from) / (this.#levels[from] as number)) * level })
    return found
  }

  get limit(): number {
    return this.#levels[this.#rough?.at ?? this.#at] as number
  }

  /** Bytes per millisecond that the device gives at this limit; 0 while nothing is known. */
  get rate(): number {
    return this.#rough ? this.#rough.rate : this.#rateAt(this.#at)
  }

  #rateAt(level: number): number {
    return this.#known[level]?.rate ?? 0
  }

  #nearest(count: number): number {
    let best = 0
    this.#levels.forEach((level, i) => {
      if (Math.abs(level - count) < Math.abs((this.#levels[best] as number) - count)) best = i
    })
    return best
  }

  // --- measuring ---

  add(sample: Sample): void {
    const { ended, took, bytes } = sample
    this.#variation.add(took / bytes)
    if (this.#variation.isGreat) this.#rough ??= this.#becomeRough(ended)
    else if (this.#rough && this.#variation.isOver) this.#becomeSmooth(this.#rough, ended)
    if (this.#rough) this.#rough.add(sample)
    else this.#addOne(sample)
  }

  #becomeRough(now: number): RoughSearch {
    // Of two levels the higher one, unless something is known that was found while tasks took equally long.
    const isFound = this.#patience >= RETRY_AFTER_TASKS && !this.#isHasty
    const at = Math.max(this.#at, this.#from ?? 0)
    return new RoughSearch(this.#levels, this.#variation, {
      at,
      now,
      isNew: !isFound,
      isHasty: this.#isHasty,
    })
  }

  #becomeSmooth({ at }: RoughSearch, now: number): void {
    this.#rough = null
    this.#forget('slower')
    // How long a task takes that is alone is not known from such times.
    this.#fewWait = -Infinity
    this.#manyWait = Infinity
    this.#isNew = false
    this.#hasBegun = true
    this.#go(at, now)
  }

  #addOne({ began, ended, took, moved = 0, shared, rate, waited, isFed }: Sample): void {
    if (!this.#hasBegun && this.#bandwidth !== null && moved > 0) {
      const fills = (this.#bandwidth * took) / moved
      this.#fills = this.#fills === 0 ? fills : Math.min(this.#fills, fills)
    }
    // Tasks that began with another limit, or when there were too few, say nothing about this one.
    const isEnough = this.#nearest(shared) === this.#at || (isFed && shared < this.limit)
    if (began < this.#chosenAt || !isEnough) return
    const level = (this.#known[this.#at] ??= new Level())
    // Tasks that begin all at one time share the device in another way than tasks that come and go.
    const isFirst = began < (this.#steadyAt ??= ended)
    if (!isFirst && this.#seen === 0) this.#waits = []
    this.#waits.push(waited)
    if (this.#waits.length > IN_A_ROW) this.#waits.shift()
    if (isFirst) {
      level.addFirst(rate)
      this.#seenFirst++
    } else this.#measure(level, rate)
    this.#decide(ended)
  }

  #measure(level: Level, rate: number): void {
    level.add(rate)
    this.#seen++
    // Where times differ, some in a row do so by chance.
    const far = CHANGED + OF_VARIATION * this.#variation.degree
    const change = level.change(far) ?? (this.#isFasterThanExpected(level, far) ? 'faster' : null)
    if (!change) return
    level.forgetOld()
    this.#forget(change)
    this.#known[this.#at] = level
  }

  /** Where single tasks are held up now and then, no four in a row show it. That it is slower shows by those that wait. */
  #isFasterThanExpected({ rate }: Level, far: number): boolean {
    return this.#expected > 0 && this.#seen >= 2 * IN_A_ROW && rate > this.#expected * (1 + far)
  }

  /** The device has changed: what is known of other levels does not hold any more. */
  #forget(change: 'slower' | 'faster'): void {
    if (change === 'slower') this.slower++
    this.#known = []
    this.#from = null
    this.#untried = []
    this.#isRound = false
    this.#patience = FIRST_PATIENCE
    this.#fewWait = Infinity
    this.#manyWait = MANY_WAIT
    this.#expected = 0
  }

  // --- deciding ---

  get #few(): number {
    return Math.max(FEW_WAIT, FEW_WAIT_OF_MANY * this.limit)
  }

  #decide(now: number): void {
    // The first tasks of all show how long one takes that is hardly disturbed.
    if (!this.#hasBegun) {
      if (this.#seenFirst + this.#seen < FIRST) return
      this.#hasBegun = true
      if (this.#step(this.#firstStep(), now)) return
    }
    const wait = this.#waits.length < 2 ? null : median(this.#waits)
    const isSteady = this.#seen >= 2
    if (isSteady && wait !== null && wait >= this.#few) this.#isNew = false
    if (this.#from !== null) this.#look(this.#from, wait, now)
    else if (isSteady && wait !== null && wait > this.#manyWait) this.#leave(wait, now)
    else if (wait !== null && wait < Math.min(this.#few, this.#fewWait)) this.#goUp(wait, now)
    else if (this.#seen >= this.#patience) {
      const isCrowded = (wait ?? 0) > SOME_WAIT || this.#patience === IN_A_ROW
      this.#isRound = true
      // Where hardly any task waits for another, fewer of them get less.
      const isRoomy = this.#isHasty && this.limit > CAREFUL && wait !== null && wait < this.#few
      this.#lookFurther(isRoomy ? [1] : isCrowded ? [-1, 1] : [1, -1], now)
    }
  }

  /** Where it is known how much a task moves, its time says how many of them the device can serve. */
  #firstStep(): number {
    // A few are found by small steps, and times of small tasks tell more of opening files than of bandwidth.
    if (this.#fills < LARGE_LEVEL) return 2
    this.#isNew = false
    return this.#nearest(this.#fills) - this.#at
  }

  #goUp(wait: number, now: number): void {
    if (!this.#step(this.#isNew ? 2 : 1, now)) this.#fewWait = wait - FEW_WAIT
  }

  /** The queue is so long that the device must have become slower. Tasks that wait in vain do not count. */
  #leave(wait: number, now: number): void {
    const to = this.#nearest(Math.max(1, this.limit - (wait - GOOD_WAIT)))
    if (to === this.#at) {
      this.#manyWait = wait + 1
      return
    }
    this.#forget('slower')
    this.#fewWait = -Infinity
    this.#patience = IN_A_ROW
    this.#go(to, now)
  }

  /** Goes to another level to see what it gives; false if there is none. */
  #step(steps: number, now: number): boolean {
    // Too many tasks cost more than too few, and the more there are the longer it takes to see it.
    const careful = steps > 0 && this.limit >= CAREFUL && !(this.#isHasty && this.#isNew) ? 1 : steps
    const to = Math.min(this.#levels.length - 1, Math.max(0, this.#at + careful))
    if (to === this.#at) return false
    this.#from = this.#at
    this.#fromWait = this.#waits.length > 0 ? median(this.#waits) : 0
    this.#known[to] = new Level()
    this.#go(to, now)
    return true
  }

  #lookFurther(steps: number[], now: number): void {
    this.#untried = steps
    for (let step = steps.shift(); step; step = steps.shift()) {
      if (this.#isHopeless(this.#at + step) && this.#patience < MOST_PATIENCE) continue
      if (this.#step(step, now)) return
    }
    this.#seen = 0
    this.#expected = this.rate
    if (!this.#isRound && this.#isHasty) return
    this.#isRound = false
    this.#patience = Math.min(Math.max(RETRY_AFTER_TASKS, this.#patience * 2), MOST_PATIENCE)
  }

  /** A level that was so much worse is not tried again before the device changes. */
  #isHopeless(level: number): boolean {
    const rate = this.#rateAt(level)
    return rate > 0 && rate < this.rate * 0.85
  }

  /** Stays if the level is better than the one before, or as good with fewer tasks. */
  #look(from: number, wait: number | null, now: number): void {
    const isHigher = this.#at > from
    // As long as no task waits, more tasks get more.
    if (isHigher && wait !== null && wait < this.#few) return this.#stay(from, now)
    const gain = this.#rateAt(this.#at) / this.#rateAt(from)
    const isBad = gain < this.#hopeless()
    if (!isBad && this.#seen < Math.min(8, Math.max(3, Math.ceil(this.limit / 2)))) return
    if (!(gain <= (isHigher ? WORTH : NO_LOSS))) return this.#stay(from, now)
    this.#from = null
    this.#isNew = false
    if (isHigher) this.#fewWait = this.#fromWait - FEW_WAIT
    this.#go(from, now)
    this.#lookFurther(this.#untried, now)
  }

  /** A gain below which the level need not be looked at any longer: the more is known, the higher. */
  #hopeless(): number {
    if (this.#seen >= IN_A_ROW) return 0.9
    if (this.#seen >= 2) return 0.8
    // Of many tasks that begin together, the first that end tell enough.
    if (this.#seenFirst >= IN_A_ROW && this.limit > CAREFUL) return 0.9
    return this.#seenFirst >= 2 ? 0.65 : 0
  }

  #stay(from: number, now: number): void {
    const wait = this.#waits.length > 0 ? median(this.#waits) : 0
    const isHigher = this.#at > from
    this.#from = null
    this.#fewWait = Infinity
    this.#manyWait = Math.max(MANY_WAIT, wait + GOOD_WAIT)
    // The first tasks of a program are slow, and must not mislead a search that runs once.
    this.#patience = this.#isHasty ? IN_A_ROW : RETRY_AFTER_TASKS
    // Go on the same way, unless enough tasks wait already that more will not help.
    const next = !isHigher ? [-1] : wait > SOME_WAIT ? [] : [this.#isNew ? 2 : 1]
    this.#lookFurther(next, now)
  }

  #go(to: number, now: number): void {
    this.#at = to
    this.#chosenAt = now
    this.#steadyAt = null
    this.#seenFirst = 0
    this.#seen = 0
    this.#expected = 0
    this.#waits = []
  }
}
