import { MillraceError } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { FailureFacts } from '../core/events.ts'
import type { Task } from '../core/task.ts'
import { CancelledError, ExitError, TaskError, messageOf } from '../model/errors.ts'
import type { Version } from '../core/data.ts'

const OWN_CODES: readonly string[] = [
  'MR_TIMEOUT',
  'MR_EXIT_CODE',
  'MR_SPAWN',
  'MR_THREAD_DIED',
  'MR_OUTPUT_MISSING',
  'MR_OUTPUT_FOLDER',
  'MR_INPUT_MISSING',
  'MR_MODULE',
  'MR_NOT_TOP_LEVEL',
  'MR_NOT_CLONEABLE',
  'MR_CALL_AT_LOAD',
  'MR_DATA_LOST',
  'MR_OPTION',
  'MR_RELEASE',
  'MR_RELEASE_CHANGED',
]

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

/** Why a task failed, in the form in which it is written down. */
export function factsOf(error: unknown, command?: string, cwd?: string): FailureFacts {
  const code = codeOf(error)
  const facts: FailureFacts = {
    name: error instanceof Error ? error.name : typeof error,
    message: [shortMessage(error), hintOf(error)].filter(Boolean).join('\n'),
  }
  if (code !== undefined) facts.code = code
  if (error instanceof Error && error.stack) facts.stack = error.stack
  if (code === 'MR_TIMEOUT') facts.timedOut = true
  if (error instanceof ExitError) {
    if (error.exitCode !== null) facts.exitCode = error.exitCode
    if (error.signal !== null) facts.signal = error.signal
  }
  if (command !== undefined) facts.command = command
  if (cwd !== undefined) facts.cwd = cwd
  return facts
}

/** Errors that crossed from a thread have lost their class but not their fields. */
const shortMessage = (error: unknown): string => {
  const short = (error as { shortMessage?: unknown } | null)?.shortMessage
  return typeof short === 'string' ? short : messageOf(error)
}

const hintOf = (error: unknown): string => {
  const hint = (error as { hint?: unknown } | null)?.hint
  return codeOf(error)?.startsWith('MR_') && typeof hint === 'string' ? hint : ''
}

/** The error that whoever waits for a failed task gets. */
export function taskError(task: Task): TaskError {
  const code = codeOf(task.error)
  const known = code !== undefined && OWN_CODES.includes(code) ? (code as ErrorCode) : 'MR_TASK_FAILED'
  return new TaskError(known, task.name, task.attempt, task.error)
}

/** The error that whoever waits for this version gets. */
export function versionError(version: Version): MillraceError {
  const { cause } = version
  if (!cause) return new CancelledError('the task that makes it', 'it will never come', null)
  if (version.state === 'failed') return taskError(cause)
  return cancelledError(version.producer ?? cause)
}

export function cancelledError(task: Task): CancelledError | TaskError {
  if (task.state === 'failed') return new CancelledError('the task', `${task.name} failed`, taskError(task))
  const failed = task.cause?.state === 'failed' ? taskError(task.cause) : null
  return new CancelledError(task.name, task.reason, failed)
}

/** What threads die of, and what to do about it; the first that is told of counts. */
const DEATHS: readonly (readonly [string, string])[] = [
  ['EMFILE', 'Raise the limit of open files, for instance with ulimit -n 4096.'],
  ['no thread can begin', 'Look at what the modules of its tasks do when they are loaded in a thread.'],
  ['crashed', 'Nobody could catch it: it came from a timer, an event, or a promise that is not awaited.'],
  ['process.exit', 'Return, or throw an error, instead of calling process.exit in a task.'],
]

/** The thread of a task ended under it, and it seems to be to blame. */
export function threadDied(reason: string): MillraceError {
  const hint = DEATHS.find(([sign]) => reason.includes(sign))?.[1]
  return new MillraceError('MR_THREAD_DIED', reason, hint === undefined ? {} : { hint })
}
