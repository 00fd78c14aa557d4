import type { Implementation } from '../tasks/task.ts'
import type { Node } from './machine.ts'

/** Keeps tasks off nodes that end by themselves before those tasks are expected to end. */
export class TimeLeft {
  /** The longest time that a task took; milliseconds. */
  #longest = 0

  record(took: number): void {
    if (took > this.#longest) this.#longest = took
  }

  /** Of a kind that has not run yet, as much is expected as of the longest so far. */
  suffices({ ended, peak }: Implementation, { until }: Node, now: number): boolean {
    return now + (ended > 0 ? peak : this.#longest) <= until
  }
}
