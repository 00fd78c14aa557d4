import type { Instructions } from '../instruction.ts'
import type { Task } from './task.ts'

/** Tasks whose results may be known from an earlier run. While that is looked up they are ready, and in no queue. */
export class Looks {
  /** Whether to look for the results of a task; null when no task is looked for. */
  wants: ((task: Task) => boolean) | null = null
  readonly #open = new Set<Task>()

  get isIdle(): boolean {
    return this.#open.size === 0
  }

  /** Whether the task has to wait for an answer: `answered` or `unanswered` of the engine. */
  begin(task: Task, instructions: Instructions): boolean {
    if (!this.wants?.(task)) return false
    this.#open.add(task)
    instructions.push({ type: 'look', task })
    return true
  }

  has(task: Task): boolean {
    return this.#open.has(task)
  }

  /** False when no answer is waited for, because the task was cancelled meanwhile. */
  end(task: Task): boolean {
    return this.#open.delete(task)
  }
}
