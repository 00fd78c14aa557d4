import { MillraceError } from '../core/errors.ts'
import type { Task } from '../core/tasks/task.ts'
import { keptSlots } from '../model/capture/call.ts'
import type { Argument, KeptSlot, Slot } from '../model/capture/call.ts'
import type { Definition } from '../model/definition.ts'
import { Attempt } from './attempt.ts'

/** The program, or the running task, that called a task. */
export interface Caller {
  /** Failures of tasks that it called, of the form `fail`, that no wait has thrown yet. */
  readonly unhandled: Set<Task>
}

/** What the runtime keeps with a task of the core. There may be millions: what only running ones need is in `attempt`. */
export class Job {
  readonly definition: Definition
  readonly args: Argument[]
  readonly slots: readonly KeptSlot[]
  readonly caller: Caller
  /** Null unless the task has been started on a node. */
  attempt: Attempt | null = null
  /** What is known for keeping its results; null unless results are kept. */
  keeping: unknown = null

  constructor(definition: Definition, args: Argument[], slots: readonly Slot[], caller: Caller) {
    this.definition = definition
    this.args = args
    this.slots = keptSlots(slots)
    this.caller = caller
  }
}

export const jobOf = (task: Task): Job => task.payload as Job

/** Used again: short tasks would leave one each behind. */
const spare: Attempt[] = []
const MOST_SPARE = 4096

export function beginAttempt(task: Task): Attempt {
  const attempt = spare.pop() ?? new Attempt()
  attempt.node = task.node
  jobOf(task).attempt = attempt
  return attempt
}

/** The attempt of a task that has been started. */
export function attemptOf(task: Task): Attempt {
  const { attempt } = jobOf(task)
  if (!attempt) throw new MillraceError('MR_INTERNAL', `${task.name} has no attempt`)
  return attempt
}

export function endAttempt(task: Task): void {
  const job = jobOf(task)
  const { attempt } = job
  job.attempt = null
  attempt?.move('over', task)
  if (attempt && spare.length < MOST_SPARE && attempt.reset()) spare.push(attempt)
}
