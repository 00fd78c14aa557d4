import type { Datum } from '../core/data/datum.ts'
import type { Group } from '../core/tasks/group.ts'
import type { Task } from '../core/tasks/task.ts'
import type { Caller } from '../node/job.ts'

/** The main program, or a running task that calls others. */
export interface Session extends Caller {
  /** Null for the main program. */
  readonly task: Task | null
  readonly group: Group
  readonly groups: Map<string, Group>
  /** Data that a task knows by numbers of its own. */
  readonly data: Map<number, Datum> | null
  /** Errors of calls that were refused, by the number of the datum that will not come. */
  readonly refused: Map<number, unknown>
  /** Waits of a running task that have no answer yet. */
  open: number
  /** Answers that wait for the task to have its lane back. */
  answers: (() => void)[]
}

export function createSession(task: Task | null, group: Group): Session {
  return {
    task,
    group,
    groups: new Map(),
    data: task ? new Map() : null,
    unhandled: new Set(),
    refused: new Map(),
    open: 0,
    answers: [],
  }
}
