import { Learning } from './learning.ts'
import { costOf, fastest, hasHalved, ladder, nearestTo } from './trials.ts'
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
  /** While few tasks are learned from, by one of the devices at one time. */
  learning: Learning | null = null
  isFrugal = false
  readonly #executors: number
  readonly #usual: number
  readonly #bounds: Bounds | null
  readonly #underWay = new Set<Epoch>()
  /** How it learns; decided at the first trial, because the number of tasks that are known grows. */
  #way: 'in turn' | 'frugal' | 'over' | null

  constructor(
    limit: number,
    { executors, usual }: { executors: number; usual: number },
    bounds: Bounds | null,
    known: readonly Trial[],
  ) {
    this.#executors = executors
    this.#usual = usual
    this.#bounds = limit === Infinity ? null : bounds
    // Where nobody knows the bandwidth, an executor is one unit of it.
    this.limit = limit === Infinity ? executors : limit
    this.rungs = ladder(this.limit, executors, this.#bounds)
    this.trials = [...known]
    this.#way = known.length > 0 ? 'over' : null
    this.meanwhile = nearestTo(usual, this.rungs) ?? this.highest
  }

  get highest(): Rung {
    return this.rungs[0] ?? { bandwidth: this.limit, concurrency: 1 }
  }

  get isUnderWay(): boolean {
    return this.#underWay.size > 0 || this.isFrugal
  }

  /** Nothing more will be tried. */
  get isOver(): boolean {
    return this.#way === 'over' && !this.isUnderWay
  }

  /** Whether the choice may be made from what is known. */
  get isEnough(): boolean {
    // While it learns there is nothing to choose; one trial by itself compares with nothing.
    if (this.isUnderWay || this.#way === 'in turn') return false
    return this.trials.length >= (this.#way === 'frugal' ? 2 : 1)
  }

  /** Something was compared, or it has been seen that most of what there was to try need not be. */
  get isWorthKeeping(): boolean {
    return this.trials.length > (this.#way === 'over' ? 0 : 1)
  }

  /** What is to be tried next, if so many tasks may be spent and so many wait. */
  next(allowed: number, waiting: number): Rung | null {
    const isInTurn = this.#way === 'in turn' || (this.#way === null && costOf(this.rungs) <= allowed)
    if (!isInTurn) return null
    const open = this.rungs.filter(rung => !this.#isTaken(rung))
    if (this.#underWay.size === 0) return open[0] ?? null
    return open.find(({ concurrency }) => concurrency <= waiting - this.#promised()) ?? null
  }

  /** Whether it may be learned from few tasks, because what is to be tried in turn takes too many. */
  mayLearn(allowed: number, waiting: number): boolean {
    if (this.#way === 'over' || this.#way === 'in turn' || this.isFrugal) return false
    if (allowed < LEAST_LEARNING || this.spent >= allowed) return false
    return waiting > 1 && costOf(this.rungs) > allowed
  }

  learn(): Learning {
    this.#way = 'frugal'
    this.isFrugal = true
    const rungs = this.#bounds ? this.rungs : null
    return (this.learning ??= new Learning(this.limit, this.#executors, rungs, this.#usual))
  }

  /** Learning from few tasks stops, for good or until there are more. Returns what has come of it. */
  learned(isOver: boolean): readonly Trial[] {
    this.isFrugal = false
    if (isOver) this.#way = 'over'
    this.trials = this.learning?.trials() ?? []
    if (this.trials.length > 0) this.meanwhile = fastest(this.trials)
    return this.trials
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

  begin(rung: Rung): Epoch {
    this.#way = 'in turn'
    const epoch: Epoch = { rung, started: 0, ended: 0, good: 0, total: 0 }
    this.#underWay.add(epoch)
    return epoch
  }

  /** Returns the trial that came of it, if any. */
  conclude(epoch: Epoch): Trial | null {
    this.#underWay.delete(epoch)
    const { rung, good, total } = epoch
    if (good === 0 || this.#way === 'over') return null
    const trial: Trial = { ...rung, mean: Math.max(total / good, 1e-6) }
    this.trials.push(trial)
    this.#lookBack()
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
