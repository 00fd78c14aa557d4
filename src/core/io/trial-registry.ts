import { Learning } from './learning.ts'
import { fastest, hasHalved, ladder, nearestTo } from './trials.ts'
import type { Bounds, Rung, Trial } from './trials.ts'

/**
 * How a limit is learned: tasks come and go while it is looked for; in epochs as the paper does it, on one node; or so on
 * several equal nodes, each with another epoch.
 */
export const LEARNING_WAYS = ['search', 'paper', 'paper-together'] as const
export type LearningWay = (typeof LEARNING_WAYS)[number]

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
export class TrialRegistry {
  readonly rungs: readonly Rung[]
  readonly limit: number
  /** What was learned. */
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
  #way: 'in turn' | 'frugal' | 'over'
  readonly #isTogether: boolean
  readonly #isKnown: boolean

  constructor(
    limit: number,
    { executors, usual }: { executors: number; usual: number },
    bounds: Bounds | null,
    known: readonly Trial[],
    way: LearningWay = 'search',
  ) {
    this.#executors = executors
    this.#usual = usual
    this.#isKnown = limit < Infinity
    this.#bounds = limit === Infinity ? null : bounds
    // Where the bandwidth is unknown, an executor is one unit of it.
    this.limit = limit === Infinity ? executors : limit
    this.rungs = ladder(this.limit, executors, this.#bounds)
    this.trials = [...known]
    this.#way = known.length > 0 ? 'over' : way === 'search' ? 'frugal' : 'in turn'
    this.#isTogether = way === 'paper-together'
    this.meanwhile = nearestTo(usual, this.rungs) ?? this.highest
  }

  get highest(): Rung {
    return this.rungs[0] ?? { bandwidth: this.limit, concurrency: 1 }
  }

  get isUnderWay(): boolean {
    return this.#underWay.size > 0 || this.isFrugal
  }

  /** While it learns: less than this no device offers a task. */
  get leastOffer(): number {
    if (!this.isFrugal || !this.learning) return -Infinity
    return Math.min(this.meanwhile.bandwidth, this.learning.bandwidth)
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

  /** The next trial in the paper's way, with this number of waiting tasks. */
  next(waiting: number): Rung | null {
    if (this.#way !== 'in turn') return null
    const open = this.rungs.filter(rung => !this.#isTaken(rung))
    if (this.#underWay.size === 0) return open[0] ?? null
    if (!this.#isTogether) return null
    return open.find(({ concurrency }) => concurrency <= waiting - this.#promised()) ?? null
  }

  /** Whether the search may begin, or go on: only where tasks wait for each other. */
  maySearch(waiting: number): boolean {
    return this.#way === 'frugal' && !this.isFrugal && waiting > 1
  }

  learn(): Learning {
    this.isFrugal = true
    const rungs = this.#bounds ? this.rungs : null
    return (this.learning ??= new Learning(this.limit, this.#executors, rungs, this.#usual, this.#isKnown))
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
    const epoch: Epoch = { rung, started: 0, ended: 0, good: 0, total: 0 }
    this.#underWay.add(epoch)
    return epoch
  }

  /** Returns the trial that came of it, if any. */
  conclude(epoch: Epoch): Trial | null {
    this.#underWay.delete(epoch)
    const { rung, good, total, started } = epoch
    // Where it ended early, fewer ran than it was to show: it is tried again when there are more.
    if (good === 0 || started < rung.concurrency || this.#way === 'over') return null
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
