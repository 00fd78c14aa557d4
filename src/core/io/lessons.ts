import { costOf, fastest, hasHalved, ladder, nextFrugal } from './trials.ts'
import type { Bounds, Rung, Trial } from './trials.ts'

/** Fewer tasks than these tell nothing. */
const LEAST_LEARNING = 5
const MOST_OF_A_FEW = 12

/** Tasks of a kind that may be spent on learning: a share, but of a few tasks up to a quarter. */
export function allowance(known: number, share: number): number {
  if (share >= 1) return Infinity
  const least = Math.min(MOST_OF_A_FEW, Math.floor(known / 4))
  return Math.max(Math.floor(share * known), least)
}

/** One trial under way on one device. */
export interface Epoch {
  readonly rung: Rung
  started: number
  ended: number
  good: number
  total: number
  peak: number
}

/**
 * What is known of one kind of task on one sort of device. Equal devices of several nodes learn together: each
 * tries something that no other one tries, and what one has found out all of them know.
 */
export class Lessons {
  readonly rungs: readonly Rung[]
  readonly limit: number
  /** What was learned: the registry. */
  trials: Trial[]
  /** Tasks that were spent on trials. */
  spent = 0
  /** What the devices use that have nothing to try while others do. */
  meanwhile: Rung
  readonly #bounds: Bounds | null
  readonly #underWay = new Set<Epoch>()
  /** How it learns; decided at the first trial, because the number of tasks that are known grows. */
  #way: 'in turn' | 'frugal' | 'over' | null

  constructor(limit: number, executors: number, bounds: Bounds | null, known: readonly Trial[]) {
    this.#bounds = bounds
    // Where nobody knows the bandwidth, an executor is one unit of it.
    this.limit = limit === Infinity ? executors : limit
    this.rungs = ladder(this.limit, executors, limit === Infinity ? null : bounds)
    this.trials = [...known]
    this.#way = known.length > 0 ? 'over' : null
    this.meanwhile = this.rungs[this.rungs.length >> 1] ?? this.highest
  }

  get highest(): Rung {
    return this.rungs[0] ?? { bandwidth: this.limit, concurrency: 1 }
  }

  get isUnderWay(): boolean {
    return this.#underWay.size > 0
  }

  /** Whether the choice may be made from what is known. */
  get isEnough(): boolean {
    // While it learns there is nothing to choose; one trial by itself compares with nothing.
    if (this.isUnderWay || this.#way === 'in turn') return false
    return this.trials.length >= (this.#way === 'frugal' ? 2 : 1)
  }

  /** What is to be tried next, if so many tasks may be spent and so many wait. */
  next(allowed: number, waiting: number): Rung | null {
    if (this.#way === 'over') return null
    const promised = this.#promised()
    if (this.#way === 'in turn' || (this.#way === null && costOf(this.rungs) <= allowed)) {
      const open = this.rungs.filter(rung => !this.#isTaken(rung))
      if (this.#underWay.size === 0) return open[0] ?? null
      return open.find(({ concurrency }) => concurrency <= waiting - promised) ?? null
    }
    if (allowed < LEAST_LEARNING) return null
    const left = allowed - this.spent - promised
    const rung = nextFrugal(this.rungs, [...this.trials, ...this.#hoped()], left, this.limit)
    return rung && rung.concurrency <= waiting - promised ? rung : null
  }

  #isTaken({ bandwidth }: Rung): boolean {
    if (this.trials.some(trial => trial.bandwidth === bandwidth)) return true
    for (const { rung } of this.#underWay) if (rung.bandwidth === bandwidth) return true
    return false
  }

  /** Tasks that trials under way still need. */
  #promised(): number {
    let sum = 0
    for (const { rung, started } of this.#underWay) sum += rung.concurrency - started
    return sum
  }

  /** Trials under way, as if more tasks at one time did not slow them down: what is worth trying beside them. */
  #hoped(): Trial[] {
    const mean = this.trials.reduce((least, one) => Math.min(least, one.mean), Infinity)
    return [...this.#underWay].map(({ rung }) => ({ ...rung, mean: mean === Infinity ? 1 : mean }))
  }

  begin(rung: Rung, allowed: number): Epoch {
    this.#way ??= costOf(this.rungs) <= allowed ? 'in turn' : 'frugal'
    const epoch: Epoch = { rung, started: 0, ended: 0, good: 0, total: 0, peak: 0 }
    this.#underWay.add(epoch)
    return epoch
  }

  /** Returns the trial that came of it, if any. */
  conclude(epoch: Epoch): Trial | null {
    this.#underWay.delete(epoch)
    const { rung, good, total, peak } = epoch
    if (good === 0 || this.#way === 'over') return null
    const isInTurn = this.#way === 'in turn'
    // With fewer tasks than the rung allows, it was another rung that was tried.
    const isPartial = !isInTurn && peak < rung.concurrency
    const tried = isPartial ? { bandwidth: this.limit / peak, concurrency: peak } : rung
    if (isPartial && this.trials.some(({ concurrency }) => concurrency === peak)) return null
    const trial: Trial = { ...tried, mean: Math.max(total / good, 1e-6) }
    this.trials.push(trial)
    if (isInTurn) this.#lookBack()
    this.meanwhile = fastest(this.trials)
    return trial
  }

  /** Whether enough has been tried: all, or without bounds as much as more bandwidth pays. */
  #lookBack(): void {
    const inOrder: Trial[] = []
    for (const rung of this.rungs) {
      const trial = this.trials.find(({ bandwidth }) => bandwidth === rung.bandwidth)
      if (!trial) return
      inOrder.push(trial)
      if (this.#bounds !== null || hasHalved(inOrder)) continue
      // More bandwidth does not pay any more, and the trial that shows it does not count.
      this.trials = inOrder.slice(0, -1)
      break
    }
    this.#way = 'over'
  }
}
