import type { Kind } from '../task.ts'
import type { Device } from './device.ts'
import { bestFor, costOf, hasHalved, ladder, nextFrugal } from './trials.ts'
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
  peak: number
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
    return this.#epoch !== null
  }

  /** Whether it wants the device for itself, for a trial that so many tasks may be spent on. */
  wants(allowed: number, waiting: number): boolean {
    return this.#epoch !== null || this.#next(allowed, waiting) !== null
  }

  #next(allowed: number, waiting: number): Rung | null {
    if (this.#way === 'over') return null
    if (this.#way === 'in turn' || (this.#way === null && costOf(this.#rungs) <= allowed)) {
      return this.#rungs[this.trials.length] ?? null
    }
    if (allowed < LEAST_LEARNING) return null
    const rung = nextFrugal(this.#rungs, this.trials, allowed - this.spent, this.#limit)
    return rung && rung.concurrency <= waiting ? rung : null
  }

  /** The device is empty and its own: a trial begins. */
  begin(allowed: number, waiting: number): void {
    const rung = this.#next(allowed, waiting)
    if (!rung) return
    this.#way ??= costOf(this.#rungs) <= allowed ? 'in turn' : 'frugal'
    this.#epoch = { rung, started: 0, ended: 0, good: 0, total: 0, peak: 0 }
  }

  /** The trial cannot begin, or go on: what has run so far has to do. */
  giveUp(): void {
    const epoch = this.#epoch
    this.#epoch = null
    if (epoch && epoch.started > 0) this.#conclude(epoch)
  }

  /** The bandwidth that a task may start with now; negative: none. */
  offer(): number {
    const epoch = this.#epoch
    if (epoch) return epoch.started < epoch.rung.concurrency ? epoch.rung.bandwidth : -1
    return this.running < this.choice.concurrency ? this.choice.bandwidth : -1
  }

  /** Returns whether the task is part of a trial. */
  started(): boolean {
    this.running++
    const epoch = this.#epoch
    if (!epoch) return false
    epoch.started++
    epoch.peak = Math.max(epoch.peak, epoch.started - epoch.ended)
    this.spent++
    return true
  }

  /** Returns true if a trial has ended with it. `took` counts only if the task ended well. */
  ended(took: number, isTrial: boolean, waiting: number): boolean {
    this.running--
    const epoch = this.#epoch
    if (!epoch || !isTrial) return false
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

  #conclude({ rung, good, total, peak }: Epoch): void {
    if (good === 0) return
    const isInTurn = this.#way === 'in turn'
    // With fewer tasks than the rung allows, it was another rung that was tried.
    const isPartial = !isInTurn && peak < rung.concurrency
    const tried = isPartial ? { bandwidth: this.#limit / peak, concurrency: peak } : rung
    if (isPartial && this.trials.some(({ concurrency }) => concurrency === peak)) return
    const trial: Trial = { ...tried, mean: Math.max(total / good, 1e-6) }
    this.trials.push(trial)
    this.#report.trial(this, trial)
    if (isInTurn && this.#bounds === null && !hasHalved(this.trials)) {
      // More bandwidth does not pay any more, and the trial that shows it does not count.
      this.trials.pop()
      this.#way = 'over'
    } else if (isInTurn && this.trials.length === this.#rungs.length) this.#way = 'over'
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
