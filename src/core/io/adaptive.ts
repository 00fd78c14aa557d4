import type { Kind } from '../tasks/task.ts'

import { LevelSearch } from './level-search.ts'
import { Alone, levelsUpTo } from './level.ts'
import type { Trial } from './trials.ts'

/** How much of a device's work each kind has had. */
interface Share {
  served: number
  /** Bytes that a task of the kind moves, on average. */
  size: number
  /** Milliseconds per byte of a task that has the device for itself. */
  readonly alone: Alone
  /** Changes of the device that were known then. */
  since: number
  /** The limit that was told of it last. */
  told: number
  /** Which coming of its tasks was noticed last. */
  coming: number
}

/** What is known when a task begins. */
export interface Begun {
  area: number
  at: number
  expected: number
}

/**
 * Finds how many tasks at one time get the most out of a device, from bytes moved and time taken, and goes on
 * looking for the whole run. It does not have to know the device's bandwidth.
 *
 * Each task that ends is one measurement: it shared the device with n others on average, and was given
 * its part of the whole. So the rate of the device at that number is known without waiting for a round.
 */
export class AdaptiveLimit {
  running = 0
  readonly #search: LevelSearch
  /** Integral of the number of running tasks over time. */
  #area = 0
  #updatedAt = 0
  readonly #shares = new Map<Kind, Share>()

  /** It begins with as many tasks as would run without it. */
  constructor(executors: number, usual = 0) {
    this.#search = new LevelSearch(levelsUpTo(Math.max(1, executors)), false, usual)
  }

  /** Tasks that may run at one time. */
  get limit(): number {
    return this.#search.limit
  }

  /** Bytes per second that the device gives at this limit; 0 while nothing is known. */
  get throughput(): number {
    return this.#search.rate * 1000
  }

  /** What is known of the limits around this one, if it holds and the kind was told of another: each limit once. */
  news(kind: Kind): Trial[] | null {
    const share = this.#share(kind)
    if (share.told === this.limit || this.#search.isLooking || this.throughput === 0) return null
    share.told = this.limit
    return this.#search.rates().map(({ level, rate }) => ({
      concurrency: level,
      bandwidth: (rate * 1000) / level,
      mean: (share.size * level) / rate,
    }))
  }

  // --- fairness ---

  /** Whether the kind is next: none of the others that wait has had less of the device. */
  isTurnOf(kind: Kind, waiting: ReadonlyMap<Kind, number>): boolean {
    for (const [other, coming] of waiting) this.#expect(other, coming)
    const own = this.#share(kind).served
    for (const other of waiting.keys()) if (other !== kind && this.#share(other).served < own) return false
    return true
  }

  /** The kind has tasks again, after it had none: what it did not use meanwhile is over. */
  #expect(kind: Kind, coming: number): void {
    const share = this.#share(kind)
    if (share.coming === coming) return
    share.coming = coming
    share.served = Math.max(share.served, this.#leastServed(kind))
  }

  #share(kind: Kind): Share {
    let share = this.#shares.get(kind)
    if (!share) {
      const served = this.#leastServed()
      share = { served, size: 1, alone: new Alone(), since: 0, told: 0, coming: 0 }
      this.#shares.set(kind, share)
    }
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
  started(kind: Kind, now: number, size: number): Begun {
    this.#advance(now)
    this.running++
    const share = this.#share(kind)
    if (size > 0) share.size = size
    share.served += share.size
    return { area: this.#area, at: now, expected: share.size }
  }

  /** `took` counts if it is positive and finite; `isFed`: more tasks are waiting. */
  ended(kind: Kind, begun: Begun, bytes: number, took: number, now: number, isFed: boolean): void {
    this.#advance(now)
    // Others may have been heard of before that have ended later.
    const area = this.#area - this.running * (this.#updatedAt - now)
    this.running--
    const share = this.#share(kind)
    share.served += bytes - begun.expected
    share.size += (bytes - share.size) * 0.3
    const time = now - begun.at
    if (time <= 0 || bytes <= 0) return
    const shared = Math.max(1, (area - begun.area) / time)
    if (share.since !== this.#search.slower) share.alone.forget()
    share.since = this.#search.slower
    const waited = shared * (1 - (share.alone.add(time / bytes) * bytes) / time)
    this.#search.add({
      began: begun.at,
      ended: now,
      took: took > 0 && took < Infinity ? took : time,
      bytes,
      shared,
      rate: (bytes / time) * shared,
      waited,
      isFed,
    })
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
}
