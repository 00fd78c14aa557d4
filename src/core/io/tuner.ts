import type { Kind } from '../tasks/task.ts'
import type { Device } from './device.ts'
import type { Learning, Lesson } from './learning.ts'
import type { Epoch, TrialRegistry } from './trial-registry.ts'
import { LARGE_LEVEL } from './level.ts'
import { bestFor, worthOfFew } from './trials.ts'
import type { Rung, Trial } from './trials.ts'

export interface TunerReport {
  trial(tuner: AutoTuner, trial: Trial): void
  verdict(tuner: AutoTuner, waiting: number, reason: string): void
}

/**
 * Finds out how much bandwidth the tasks of one kind should ask for on one device. It learns alone on the
 * device, in epochs; then it chooses for the tasks that wait, again whenever some arrive.
 */
export class AutoTuner {
  readonly kind: Kind
  readonly device: Device
  /** What it and its equals on other nodes have found out. */
  readonly registry: TrialRegistry
  /** What tasks hold from now on, and how many of them may run at one time. */
  choice: Rung
  running = 0
  #epoch: Epoch | null = null
  /** While it searches. */
  #learning: Learning | null = null
  readonly #report: TunerReport
  #isTold = false

  constructor(kind: Kind, device: Device, registry: TrialRegistry, report: TunerReport) {
    this.kind = kind
    this.device = device
    this.registry = registry
    this.#report = report
    this.choice = registry.highest
  }

  get isLearning(): boolean {
    return this.#epoch !== null || this.#learning !== null
  }

  /** Whether it wants the device for itself, to try something. */
  wants(waiting: number): boolean {
    return this.isLearning || this.registry.next(waiting) !== null || this.registry.maySearch(waiting)
  }

  /** The search that its tasks are learned from now, if there is one. */
  get learning(): Learning | null {
    return this.#learning
  }

  /** The device is empty and its own: a trial begins. */
  begin(waiting: number): void {
    const rung = this.registry.next(waiting)
    if (rung) this.#epoch = this.registry.begin(rung)
    else if (this.registry.maySearch(waiting)) this.#learning = this.registry.learn()
  }

  /** The trial cannot begin, or go on: what has run so far has to do. */
  giveUp(): void {
    const epoch = this.#epoch
    this.#epoch = null
    if (epoch) this.#conclude(epoch)
    if (this.#learning) this.#stopLearning(false)
  }

  /** The bandwidth that a task may start with now; negative: none. */
  offer(way: 'read' | 'write'): number {
    const epoch = this.#epoch
    if (epoch) return epoch.started < epoch.rung.concurrency ? epoch.rung.bandwidth : -1
    if (this.#learning) {
      const { bandwidth, concurrency } = this.#learning
      if (this.running >= concurrency) return -1
      // Those that began with a much lower limit still hold more: they must not keep away what is tried now.
      if (concurrency < LARGE_LEVEL) return bandwidth
      return Math.min(bandwidth, Math.max(0, this.device[way].spare) / (concurrency - this.running))
    }
    const { bandwidth, concurrency } = this.registry.isUnderWay ? this.registry.meanwhile : this.choice
    return this.running < concurrency ? bandwidth : -1
  }

  /** Returns what `ended` is to be told if it is learned from the task. */
  started(now: number): Lesson | null {
    this.running++
    const epoch = this.#epoch
    if (!this.isLearning) return null
    this.registry.spent++
    if (!epoch) return this.#learning?.begin(now) ?? null
    epoch.started++
    return { at: now, area: 0 }
  }

  /** Returns true if a trial has ended with it. `took` counts only if the task ended well; `most`: tasks that it may learn from. */
  ended(
    took: number,
    lesson: Lesson | null,
    waiting: number,
    now: number,
    most = Infinity,
    bytes = 0,
  ): boolean {
    this.running--
    const epoch = this.#epoch
    if (!lesson) return false
    if (!epoch) {
      this.registry.learning?.end(lesson, took, now, bytes)
      return this.#mayStop(waiting, most)
    }
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

  #mayStop(waiting: number, most: number): boolean {
    if (!this.#learning) return false
    const isIdle = this.running === 0 && waiting === 0
    const isOver = this.#learning.isOver || this.registry.spent >= most
    if (!isOver && !isIdle) return false
    this.#stopLearning(isOver)
    return true
  }

  #stopLearning(isOver: boolean): void {
    this.#learning = null
    for (const trial of this.registry.learned(isOver)) this.#report.trial(this, trial)
  }

  #conclude(epoch: Epoch): void {
    const trial = this.registry.conclude(epoch)
    if (trial) this.#report.trial(this, trial)
  }

  /** Chooses for this number of waiting tasks, if there is a choice. */
  choose(waiting: number): void {
    if (!this.registry.isEnough || this.wants(waiting)) return
    const { trials, learning } = this.registry
    const best = bestFor(Math.max(waiting, 1), trials, learning ? worthOfFew : undefined)
    if (!best) return
    const { bandwidth, concurrency } = this.choice
    const isSame = best.bandwidth === bandwidth && best.concurrency === concurrency
    if (isSame && this.#isTold) return
    this.#isTold = true
    this.choice = best
    this.#report.verdict(this, waiting, reasonFor(best, waiting))
  }
}

const reasonFor = (best: Trial, waiting: number): string =>
  `${best.concurrency} at a time took ${best.mean.toFixed(1)} ms each, which is best for ${waiting} waiting`
