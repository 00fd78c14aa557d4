import { atHome } from '../core/data/staging-name.ts'
import { MillraceError } from '../core/errors.ts'
import type { FailureFacts } from '../core/events.ts'
import type { Task } from '../core/tasks/task.ts'
import { isError, messageOf, nameOf, shorten, textFieldOf } from '../general/thrown.ts'
import { ExitError } from '../model/errors.ts'
import { jobOf } from './job.ts'

export const codeOf = (error: unknown): string | undefined => textFieldOf(error, 'code')

/** Why a task failed, in the form in which it is written down. */
export function factsOf(error: unknown, command?: string, cwd?: string): FailureFacts {
  const code = codeOf(error)
  const facts: FailureFacts = {
    name: nameOf(error),
    message: atHome([shortMessage(error), hintOf(error)].filter(Boolean).join('\n')),
  }
  if (code !== undefined) facts.code = code
  const stack = isError(error) ? textFieldOf(error, 'stack') : undefined
  if (stack) facts.stack = shorten(stack)
  if (code === 'MR_TIMEOUT') facts.timedOut = true
  if (isError(error) && error instanceof ExitError) {
    if (error.exitCode !== null) facts.exitCode = error.exitCode
    if (error.signal !== null) facts.signal = error.signal
  }
  if (command !== undefined) facts.command = command
  if (cwd !== undefined) facts.cwd = cwd
  return facts
}

/** Errors that crossed from a thread have lost their class but not their fields. */
const shortMessage = (error: unknown): string => textFieldOf(error, 'shortMessage') ?? messageOf(error)

const hintOf = (error: unknown): string =>
  codeOf(error)?.startsWith('MR_') ? (textFieldOf(error, 'hint') ?? '') : ''

/** Why threads end, and what to do about it. The first reason reported counts. */
const DEATHS: readonly (readonly [string, string])[] = [
  ['EMFILE', 'Raise the limit of open files, for instance with ulimit -n 4096.'],
  ['no thread can begin', 'Look at what the modules of its tasks do when they are loaded in a thread.'],
  ['crashed', 'It could not be caught: it came from a timer, an event, or a promise that is not awaited.'],
  ['process.exit', 'Return, or throw an error, instead of calling process.exit in a task.'],
]

/** The thread of a task ended under it, and it seems to be to blame. */
export function threadDied(reason: string): MillraceError {
  const hint = DEATHS.find(([sign]) => reason.includes(sign))?.[1]
  return new MillraceError('MR_THREAD_DIED', reason, hint === undefined ? {} : { hint })
}

export const timeoutError = (task: Task): MillraceError =>
  new MillraceError('MR_TIMEOUT', `it took longer than its timeout of ${jobOf(task).definition.timeout} ms`)
