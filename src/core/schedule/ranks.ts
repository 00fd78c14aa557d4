import { Heap } from '../../general/heap.ts'
import type { Task } from '../tasks/task.ts'

/**
 * The rank of a task is its distance from the end of the graph: 0 when nothing waits for it, else one more
 * than the highest rank among those that do. The graph grows while it runs, so ranks rise; they are brought
 * up to date before a decision, in one pass over what changed, later tasks first: a task that waits for another
 * was called after it, so each is visited once.
 */
export class Ranks {
  readonly #changed = new Heap<Task>((a, b) => a.id > b.id)

  added(task: Task): void {
    if (task.missing > 0) this.#changed.push(task)
  }

  /** `rose` hears of each task whose rank rose, and which it had before. */
  settle(rose: (task: Task, before: number) => void): void {
    let last: Task | null = null
    for (let task = this.#changed.pop(); task; task = this.#changed.pop()) {
      if (task === last || task.ended) continue
      last = task
      const rank = task.rank + 1
      for (const before of prerequisites(task)) {
        if (before.rank >= rank || before.ended) continue
        const old = before.rank
        before.rank = rank
        if (before.missing > 0) this.#changed.push(before)
        rose(before, old)
      }
    }
  }
}

/** The tasks that make what this one waits for. */
function* prerequisites(task: Task): Generator<Task> {
  for (const { read } of task.accesses) {
    if (read?.state !== 'pending') continue
    if (read.producer) yield read.producer
    else if (read.team) yield* read.team.tasks
  }
}
