import type { Kind } from '../task.ts'

/** Numbers of tasks at one time that are worth telling apart. */
function levelsUpTo(most: number): number[] {
  const levels: number[] = []
  for (let base = 1; base <= most; base *= 2) {
    levels.push(base)
    if (base > 1 && base * 1.5 <= most) levels.push(base * 1.5)
  }
  if (levels.at(-1) !== most) levels.push(most)
  return levels
}

interface Level {
  /** Bytes per millisecond that the device gave at this level. */
  rate: number
  samples: number
}

/** A higher level has to give so much more to be worth it. */
const WORTH = 1.02
/** A rate so far from what is known says that the device has changed. */
const CHANGED = 0.2
/** After so many tasks at the best level, the levels beside it are tried again; each time in vain doubles it. */
const PATIENCE = 60
const MOST_PATIENCE = 480
/** From this level on, up goes by small steps only. */
const CAREFUL = 8
/** A level that was so much worse is not tried again before the device changes. */
const HOPELESS = 0.85

/** How much of a device's work each kind has had. */
interface Share {
  served: number
  /** Bytes that a task of the kind moves, on average. */
  size: number
}

/**
 * Finds how many tasks at one time get the most out of a device, from bytes moved and time taken, and goes on
 * looking for the whole run. It does not have to know the device's bandwidth.
 *
 * Each task that ends is one measurement: it shared the device with so many others on average, and was given
 * its part of the whole. So the rate of the device at that number is known without waiting for a round.
 */
export class AdaptiveLimit {
  running = 0
  readonly #levels: number[]
  #known: Level[] = []
  #at: number
  /** The level from which it came here to look, while it looks. */
  #from: number | null = null
  /** Steps of two levels, until one does not help for the first time; 0 from then on. */
  #stride = 2
  #patience = PATIENCE
  /** The other way is still to be tried with large steps. */
  #mayTurn = true
  /** Steps of one level that are still to be tried from the best one. */
  #untried: number[] = []
  /** Measurements at this level since it was chosen, and the last few of them. */
  #seen = 0
  #recent: number[] = []
  /** Integral of the number of running tasks over time. */
  #area = 0
  #updatedAt = 0
  readonly #shares = new Map<Kind, Share>()

  constructor(executors: number) {
    this.#levels = levelsUpTo(Math.max(1, executors))
    this.#at = this.#nearest(Math.min(4, executors))
  }

  /** Tasks that may run at one time. */
  get limit(): number {
    return this.#levels[this.#at] as number
  }

  /** Bytes per second that the device gives at this limit; 0 while nothing is known. */
  get throughput(): number {
    return (this.#known[this.#at]?.rate ?? 0) * 1000
  }

  // --- fairness ---

  /** Whether the kind is next: none of the others that wait has had less of the device. */
  isTurnOf(kind: Kind, waits: (kind: Kind) => boolean): boolean {
    const own = this.#share(kind).served
    for (const [other, { served }] of this.#shares) {
      if (other !== kind && served < own && waits(other)) return false
    }
    return true
  }

  /** The kind has tasks for this device; `isNew`: it had none before. */
  expect(kind: Kind, isNew: boolean): void {
    const share = this.#share(kind)
    if (isNew) share.served = Math.max(share.served, this.#leastServed(kind))
  }

  #share(kind: Kind): Share {
    let share = this.#shares.get(kind)
    if (!share) this.#shares.set(kind, (share = { served: this.#leastServed(), size: 1 }))
    return share
  }

  /** Who comes later has no claim to what others had before. */
  #leastServed(but: Kind | null = null): number {
    let least = Infinity
    for (const [kind, { served }] of this.#shares) if (kind !== but) least = Math.min(least, served)
    return least === Infinity ? 0 : least
  }

  // --- measuring ---

  /** Returns what `ended` is to be told. */
  started(kind: Kind, now: number, size: number): { area: number; at: number; expected: number } {
    this.#advance(now)
    this.running++
    const share = this.#share(kind)
    if (size > 0) share.size = size
    share.served += share.size
    return { area: this.#area, at: now, expected: share.size }
  }

  ended(kind: Kind, begun: { area: number; at: number; expected: number }, bytes: number, now: number): void {
    this.#advance(now)
    this.running--
    const share = this.#share(kind)
    share.served += bytes - begun.expected
    share.size += (bytes - share.size) * 0.3
    const time = now - begun.at
    if (time <= 0 || bytes <= 0) return
    const shared = (this.#area - begun.area) / time
    this.#measure(shared, (bytes / time) * shared)
  }

  /** The task told nothing: it failed or was stopped. */
  dropped(kind: Kind, begun: { expected: number }, now: number): void {
    this.#advance(now)
    this.running--
    this.#share(kind).served -= begun.expected
  }

  #advance(now: number): void {
    this.#area += this.running * Math.max(0, now - this.#updatedAt)
    this.#updatedAt = Math.max(now, this.#updatedAt)
  }

  #nearest(count: number): number {
    let best = 0
    this.#levels.forEach((level, i) => {
      if (Math.abs(level - count) < Math.abs((this.#levels[best] as number) - count)) best = i
    })
    return best
  }

  #measure(shared: number, rate: number): void {
    const level = this.#nearest(shared)
    const known = (this.#known[level] ??= { rate, samples: 0 })
    known.samples++
    const isHere = level === this.#at
    if (isHere) {
      this.#seen++
      this.#recent.push(rate)
      if (this.#recent.length > 4) this.#recent.shift()
      if (this.#hasChanged(known)) return this.#startOver(known)
    }
    known.rate += (rate - known.rate) * Math.max(1 / known.samples, 0.25)
    if (isHere) this.#move()
  }

  /** All of the last few measurements lie on one side of what is known, and far from it. */
  #hasChanged({ rate, samples }: Level): boolean {
    if (samples < 8 || this.#recent.length < 4) return false
    return (
      this.#recent.every(recent => recent < rate * (1 - CHANGED)) ||
      this.#recent.every(recent => recent > rate * (1 + CHANGED))
    )
  }

  #startOver(known: Level): void {
    const mean = this.#recent.reduce((sum, one) => sum + one, 0) / this.#recent.length
    this.#stride = mean < known.rate ? -2 : 2
    this.#mayTurn = true
    this.#patience = PATIENCE
    this.#known = []
    this.#known[this.#at] = { rate: mean, samples: this.#recent.length }
    this.#from = null
    this.#seen = this.#enough()
    this.#move()
  }

  /** Measurements that a level needs to be judged. */
  #enough(): number {
    return this.#stride !== 0 ? 2 : Math.min(8, Math.max(2, Math.ceil(this.limit / 2)))
  }

  // --- looking for the best level ---

  #move(): void {
    if (this.#from !== null) {
      const isBad = this.#seen >= 2 && this.#rateAt(this.#at) < this.#rateAt(this.#from) * HOPELESS
      if (isBad || this.#seen >= this.#enough()) this.#judge(this.#from)
    } else if (this.#stride !== 0) {
      if (this.#seen >= this.#enough() && !this.#look(this.#stride)) this.#lookAround()
    } else if (this.#seen >= this.#patience) this.#lookAround()
  }

  #lookAround(): void {
    this.#stride = 0
    this.#untried = [1, -1]
    this.#lookFurther()
  }

  #lookFurther(): void {
    for (let step = this.#untried.shift(); step; step = this.#untried.shift()) if (this.#look(step)) return
    this.#seen = 0
    this.#patience = Math.min(this.#patience * 2, MOST_PATIENCE)
  }

  /** Goes to another level to see what it gives; false if there is no use in it. */
  #look(steps: number): boolean {
    // Too many tasks cost more than too few, and the more there are the longer it takes to see it.
    const careful = steps > 0 && this.limit >= CAREFUL ? 1 : steps
    const to = Math.min(this.#levels.length - 1, Math.max(0, this.#at + careful))
    const there = this.#known[to]
    const isHopeless = there !== undefined && there.rate < this.#rateAt(this.#at) * HOPELESS
    if (to === this.#at || isHopeless) return false
    this.#from = this.#at
    this.#go(to)
    return true
  }

  /** Stays if the level is better than the one before, or as good with fewer tasks. */
  #judge(from: number): void {
    const here = this.#at
    const worth = here > from ? WORTH : 1 / WORTH ** 0.5
    const isBetter = this.#rateAt(here) > this.#rateAt(from) * worth
    this.#from = null
    if (isBetter) {
      this.#mayTurn = false
      this.#patience = PATIENCE
      // It pays to go on the same way.
      if (!this.#look(this.#stride || Math.sign(here - from))) this.#lookAround()
      return
    }
    this.#go(from)
    if (this.#stride === 0) return this.#lookFurther()
    if (this.#mayTurn) {
      this.#mayTurn = false
      this.#stride = -this.#stride
      if (this.#look(this.#stride)) return
    }
    this.#lookAround()
  }

  #rateAt(level: number): number {
    return this.#known[level]?.rate ?? 0
  }

  #go(to: number): void {
    this.#at = to
    this.#seen = 0
    this.#recent = []
  }
}
