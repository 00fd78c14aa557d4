import type { Task } from '../core/tasks/task.ts'
import type { ReturnWhy } from '../core/why.ts'

/**
 * How attempts of one form of task are carried out: functions on threads, commands as programs. A node has one of these
 * for each form, and asks no task for its form but to choose among them.
 */
export interface TaskForm {
  /** Loads ahead what the first task will need; gives what is worth waiting for. */
  warmUp(): Promise<void> | null
  /** Makes ready what the attempt needs before it can be launched; null when nothing has to be waited for. */
  prepare(task: Task): Promise<void> | null
  /** It begins as soon as it is launched. If not, its end tells when it began. */
  beginsAtOnce(task: Task): boolean
  /** It cannot wait for its turn where it runs, behind the task that runs on its lane. */
  mustWait(task: Task, head: Task | undefined): boolean
  /** Runs the attempt. `isLate`: no `flush` follows soon. */
  launch(task: Task, isLate: boolean): void
  /** Stops an attempt that was launched; `endings` hears of it. */
  stop(task: Task): void
  /** The same for one whose timeout has passed. */
  stopOverdue(task: Task, reason: string): void
  /** Takes back an attempt unless it has begun. */
  recall(task: Task, why: ReturnWhy): void
  /** Takes results that are there although they were not announced. Returns whether there are any. */
  takeResults(): boolean
  /** An attempt that waited for its turn where it runs has been seen to begin. */
  hasBegun(task: Task): boolean
  /** Its result is wanted at once. */
  hurry(task: Task): void
  /** Puts the values that it made where their readers find them; all its files are in place. */
  collect(task: Task, outputs: readonly unknown[]): void
  /** The attempt is over, and about to be forgotten. */
  left(task: Task): void
  flush(): void
  drain(): void
  /** Returns whether it is to be called again soon. */
  tick(): boolean
  end(): Promise<void>
  endNow(): void
}
