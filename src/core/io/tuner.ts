import type { Kind } from '../task.ts'
import type { Device } from './device.ts'
import type { Learning, Lesson } from './learning.ts'
import type { Epoch, Lessons } from './lessons.ts'
import { bestFor, worthOfFew } from './trials.ts'
import type { Rung, Trial } from './trials.ts'

/** So many tasks more tell that no others come with which it may go on learning. */
const MOST_UNLEARNED = 16

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
  /** What it and its equals on other nodes have found out. */
  readonly lessons: Lessons
  /** What tasks hold from now on, and how many of them may run at one time. */
  choice: Rung
  running = 0
  #epoch: Epoch | null = null
  /** While it learns from few tasks, and the most of them that it may spend. */
  #learning: Learning | null = null
  #allowed = 0
  /** Tasks that ran since it may spend no more: others may come, and with them it goes on. */
  #unlearned = 0
  readonly #report: TunerReport
  #isTold = false

  constructor(kind: Kind, device: Device, lessons: Lessons, report: TunerReport) {
    this.kind = kind
    this.device = device
    this.lessons = lessons
    this.#report = report
    this.choice = lessons.highest
  }

  get isLearning(): boolean {
    return this.#epoch !== null || this.#learning !== null
  }

  /** Whether it wants the device for itself, for a trial that so many tasks may be spent on. */
  wants(allowed: number, waiting: number): boolean {
    if (this.isLearning || this.lessons.next(allowed, waiting)) return true
    return this.lessons.mayLearn(allowed, waiting)
  }

  /** The device is empty and its own: a trial begins. */
  begin(allowed: number, waiting: number): void {
    const rung = this.lessons.next(allowed, waiting)
    if (rung) this.#epoch = this.lessons.begin(rung)
    else if (this.lessons.mayLearn(allowed, waiting)) {
      this.#learning = this.lessons.learn()
      this.#allowed = allowed
    }
  }

  /** More tasks have come while it learns: it may learn from more of them. */
  allow(tasks: number): void {
    if (tasks <= this.#allowed) return
    this.#allowed = tasks
    this.#unlearned = 0
  }

  /** The trial cannot begin, or go on: what has run so far has to do. */
  giveUp(): void {
    const epoch = this.#epoch
    this.#epoch = null
    if (epoch) this.#conclude(epoch)
    if (this.#learning) this.#stopLearning(false)
  }

  /** The bandwidth that a task may start with now; negative: none. */
  offer(): number {
    const epoch = this.#epoch
    if (epoch) return epoch.started < epoch.rung.concurrency ? epoch.rung.bandwidth : -1
    if (this.#learning) {
      const { bandwidth, concurrency } = this.#learning
      return this.running < concurrency && !this.#isAtEnd ? bandwidth : -1
    }
    const { bandwidth, concurrency } = this.lessons.isUnderWay ? this.lessons.meanwhile : this.choice
    return this.running < concurrency ? bandwidth : -1
  }

  /** Returns what `ended` is to be told if it is learned from the task. */
  started(now: number): Lesson | null {
    this.running++
    const epoch = this.#epoch
    if (!this.isLearning) return null
    const isLearnedFrom = epoch !== null || !this.#isSpent
    if (isLearnedFrom) this.lessons.spent++
    else this.#unlearned++
    if (!epoch) return this.#learning?.begin(now, isLearnedFrom) ?? null
    epoch.started++
    return { at: now, area: 0, isLearnedFrom }
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

  get #isSpent(): boolean {
    return this.lessons.spent >= this.#allowed
  }

  get #isAtEnd(): boolean {
    return this.#isSpent && this.#unlearned >= MOST_UNLEARNED
  }

  #learnFrom(lesson: Lesson, took: number, waiting: number, now: number): boolean {
    this.lessons.learning?.end(lesson, took, now)
    if (!this.#learning) return false
    const isIdle = this.running === 0 && waiting === 0
    const { isOver } = this.#learning
    if (!isOver && !isIdle && !this.#isAtEnd) return false
    this.#stopLearning(isOver || this.#isSpent)
    return true
  }

  #stopLearning(isOver: boolean): void {
    this.#learning = null
    for (const trial of this.lessons.learned(isOver)) this.#report.trial(this, trial)
  }

  #conclude(epoch: Epoch): void {
    const trial = this.lessons.conclude(epoch)
    if (trial) this.#report.trial(this, trial)
  }

  /** Chooses for so many waiting tasks, if there is something to choose from. */
  choose(waiting: number, allowed: number): void {
    if (!this.lessons.isEnough || this.wants(allowed, waiting)) return
    const { trials, learning } = this.lessons
    const best = bestFor(Math.max(waiting, 1), trials, learning ? worthOfFew : undefined)
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
