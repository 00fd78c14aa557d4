import type { MillraceError } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { Task } from '../core/tasks/task.ts'
import { CancelledError, TaskError } from '../model/errors.ts'
import { codeOf } from '../node/failure-facts.ts'
import type { Version } from '../core/data/datum.ts'

const OWN_CODES: readonly string[] = [
  'MR_TIMEOUT',
  'MR_EXIT_CODE',
  'MR_SPAWN',
  'MR_THREAD_DIED',
  'MR_OUTPUT_MISSING',
  'MR_OUTPUT_FOLDER',
  'MR_INPUT_MISSING',
  'MR_PATH',
  'MR_MODULE',
  'MR_NOT_TOP_LEVEL',
  'MR_NOT_CLONEABLE',
  'MR_CALL_AT_LOAD',
  'MR_DATA_LOST',
  'MR_OPTION',
  'MR_RELEASE',
  'MR_RELEASE_CHANGED',
]

/** The error for waiters of a failed task. */
export function taskError(task: Task): TaskError {
  const code = codeOf(task.error)
  const known = code !== undefined && OWN_CODES.includes(code) ? (code as ErrorCode) : 'MR_TASK_FAILED'
  return new TaskError(known, task.name, task.attempt, task.error, task.title)
}

/** The error for waiters of this version. */
export function versionError(version: Version): MillraceError {
  const { cause } = version
  if (!cause) return new CancelledError('the task that makes it', 'it will never come', null)
  if (version.state === 'failed') return taskError(cause)
  return cancelledError(version.producer ?? cause)
}

export function cancelledError(task: Task): CancelledError | TaskError {
  if (task.state === 'failed') return new CancelledError('the task', `${task.title} failed`, taskError(task))
  const failed = task.cause?.state === 'failed' ? taskError(task.cause) : null
  return new CancelledError(task.name, task.reason, failed, task.title)
}
