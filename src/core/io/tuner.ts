import type { Kind } from '../task.ts'
import type { Device } from './device.ts'
import { Learning } from './learning.ts'
import type { Lesson } from './learning.ts'
import { bestFor, costOf, hasHalved, ladder } from './trials.ts'
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

interface Epoch {
  readonly rung: Rung
  started: number
  ended: number
  good: number
  total: number
}

export interface TunerReport {
  trial(tuner: AutoTuner, trial: Trial): void
  verdict(tuner: AutoTuner, reason: string): void
}

/**
 * Finds out how much bandwidth the tasks of one kind should ask for on one device. It learns alone on the
 * device, in epochs; then it chooses for the tasks that wait, again whenever some arrive.
 */
export class AutoTuner {
  readonly kind: Kind
  readonly device: Device
  /** What was learned: the registry. */
  trials: Trial[]
  /** Tasks that were spent on trials. */
  spent = 0
  /** What tasks hold from now on, and how many of them may run at one time. */
  choice: Rung
  running = 0
  #epoch: Epoch | null = null
  /** While few tasks are learned from; and whether that goes on now. */
  #learning: Learning | null = null
  #isFrugal = false
  /** The most tasks that may be spent. */
  #allowed = 0
  /** How it learns; decided at the first trial, because the number of tasks that are known grows. */
  #way: 'in turn' | 'frugal' | 'over' | null
  readonly #limit: number
  readonly #bounds: Bounds | null
  readonly #rungs: Rung[]
  readonly #report: TunerReport
  #isTold = false

  constructor(
    kind: Kind,
    device: Device,
    limit: number,
    bounds: Bounds | null,
    known: readonly Trial[],
    report: TunerReport,
  ) {
    this.kind = kind
    this.device = device
    this.#bounds = bounds
    this.#report = report
    // Where nobody knows the bandwidth, an executor is one unit of it.
    this.#limit = limit === Infinity ? device.executors : limit
    this.#rungs = ladder(this.#limit, device.executors, limit === Infinity ? null : bounds)
    this.trials = [...known]
    this.#way = known.length > 0 ? 'over' : null
    this.choice = this.#rungs[0] ?? { bandwidth: this.#limit, concurrency: 1 }
  }

  get isLearning(): boolean {
    return this.#epoch !== null || this.#isFrugal
  }

  /** Whether it wants the device for itself, for a trial that so many tasks may be spent on. */
  wants(allowed: number, waiting: number): boolean {
    return this.isLearning || this.#next(allowed) !== null || this.#mayLearn(allowed, waiting)
  }

  /** The next bandwidth to be tried, if all of them can be paid for. */
  #next(allowed: number): Rung | null {
    const isInTurn = this.#way === 'in turn' || (this.#way === null && costOf(this.#rungs) <= allowed)
    return isInTurn ? (this.#rungs[this.trials.length] ?? null) : null
  }

  #mayLearn(allowed: number, waiting: number): boolean {
    if (this.#way === 'over' || this.#way === 'in turn' || allowed < LEAST_LEARNING) return false
    return this.spent < allowed && waiting > 1 && costOf(this.#rungs) > allowed
  }

  /** The device is empty and its own: a trial begins. */
  begin(allowed: number, waiting: number): void {
    const rung = this.#next(allowed)
    if (rung) {
      this.#way = 'in turn'
      this.#epoch = { rung, started: 0, ended: 0, good: 0, total: 0 }
    } else if (this.#mayLearn(allowed, waiting)) {
      const { executors } = this.device
      this.#way = 'frugal'
      this.#isFrugal = true
      this.#allowed = allowed
      this.#learning ??= new Learning(this.#limit, executors, this.#bounds ? this.#rungs : null)
    }
  }

  /** The trial cannot begin, or go on: what has run so far has to do. */
  giveUp(): void {
    const epoch = this.#epoch
    this.#epoch = null
    if (epoch && epoch.started > 0) this.#conclude(epoch)
    this.#conclusions()
  }

  /** The bandwidth that a task may start with now; negative: none. */
  offer(): number {
    const epoch = this.#epoch
    if (epoch) return epoch.started < epoch.rung.concurrency ? epoch.rung.bandwidth : -1
    const learning = this.#isFrugal ? this.#learning : null
    if (!learning) return this.running < this.choice.concurrency ? this.choice.bandwidth : -1
    return this.running < learning.concurrency && this.spent < this.#allowed ? learning.bandwidth : -1
  }

  /** Returns what `ended` is to be told if it is learned from the task. */
  started(now: number): Lesson | null {
    this.running++
    const epoch = this.#epoch
    if (!epoch && !this.#isFrugal) return null
    this.spent++
    if (!epoch) return this.#learning?.begin(now) ?? null
    epoch.started++
    return { at: now, area: 0 }
  }

  /** Returns true if a trial has ended with it. `took` counts only if the task ended well. */
  ended(took: number, lesson: Lesson | null, waiting: number, now: number): boolean {
    this.running--
    const epoch = this.#epoch
    if (!lesson) return false
    if (!epoch) return this.#learnFrom(lesson, took, waiting, now)
    epoch.ended++
    if (took >= 0 && took < Infinity) {
      epoch.good++
      epoch.total += took
    }
    const isFull = epoch.started === epoch.rung.concurrency || waiting === 0
    if (!isFull || epoch.ended < epoch.started) return false
    this.#epoch = null
    this.#conclude(epoch)
    return true
  }

  #learnFrom(lesson: Lesson, took: number, waiting: number, now: number): boolean {
    const learning = this.#learning as Learning
    learning.end(lesson, took, now)
    if (!this.#isFrugal) return false
    const isSpent = this.spent >= this.#allowed
    if (!learning.isOver && (waiting > 0 || this.running > 0) && !(isSpent && this.running === 0))
      return false
    if (learning.isOver || isSpent) this.#way = 'over'
    this.#conclusions()
    return true
  }

  /** What was learned from few tasks is the registry; it is told when something is new in it. */
  #conclusions(): void {
    if (!this.#isFrugal) return
    this.#isFrugal = false
    this.trials = this.#learning?.trials() ?? []
    for (const trial of this.trials) this.#report.trial(this, trial)
  }

  #conclude({ rung, good, total }: Epoch): void {
    if (good === 0) return
    const trial: Trial = { ...rung, mean: Math.max(total / good, 1e-6) }
    this.trials.push(trial)
    this.#report.trial(this, trial)
    if (this.#bounds === null && !hasHalved(this.trials)) {
      // More bandwidth does not pay any more, and the trial that shows it does not count.
      this.trials.pop()
      this.#way = 'over'
    } else if (this.trials.length === this.#rungs.length) this.#way = 'over'
  }

  /** Chooses for so many waiting tasks, if there is something to choose from. */
  choose(waiting: number, allowed: number): void {
    if (this.trials.length === 0 || this.wants(allowed, waiting)) return
    // While it learns there is nothing to choose; one trial by itself compares with nothing.
    if (this.#way === 'in turn' || (this.#way === 'frugal' && this.trials.length < 2)) return
    const best = bestFor(Math.max(waiting, 1), this.trials)
    if (!best) return
    const { bandwidth, concurrency } = this.choice
    const isSame = best.bandwidth === bandwidth && best.concurrency === concurrency
    if (isSame && this.#isTold) return
    this.#isTold = true
    this.choice = best
    this.#report.verdict(this, reasonFor(best, waiting))
  }
}

const reasonFor = (best: Trial, waiting: number): string =>
  `${best.concurrency} at a time took ${best.mean.toFixed(1)} ms each, which is best for ${waiting} waiting`
