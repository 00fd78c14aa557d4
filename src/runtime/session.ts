import type { Datum } from '../core/data.ts'
import type { Group } from '../core/group.ts'
import type { Task } from '../core/task.ts'

/** The main program, or a running task that calls others: whoever calls tasks and waits for them. */
export interface Session {
  /** Null for the main program. */
  readonly task: Task | null
  readonly group: Group
  readonly groups: Map<string, Group>
  /** Data that a task knows by numbers of its own. */
  readonly data: Map<number, Datum> | null
  /** Failures of tasks that it called, of the form `fail`, that no wait has thrown yet. */
  readonly unhandled: Set<Task>
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
