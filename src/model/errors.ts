import { atHome } from '../core/data/staging-name.ts'
import { MillraceError } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { fieldOf, messageOf, textFieldOf } from '../general/thrown.ts'

/** A task failed. `cause` is what it threw. */
export class TaskError extends MillraceError {
  override name = 'TaskError'
  /** Name and number, such as `multiply#12`. */
  readonly task: string
  /** The attempt that failed last, from 1. */
  readonly attempt: number
  readonly timedOut: boolean
  readonly exitCode: number | null
  readonly signal: string | null

  constructor(code: ErrorCode, task: string, attempt: number, cause: unknown, title = task) {
    // An error that comes from a thread has lost its class, but not its fields.
    const text = atHome(textFieldOf(cause, 'shortMessage') ?? messageOf(cause))
    const hint = textFieldOf(cause, 'hint')
    const again = attempt > 1 ? ` (attempt ${attempt})` : ''
    super(code, `${title} failed${again}: ${text}`, {
      cause,
      ...(hint ? { hint } : {}),
    })
    this.task = task
    this.attempt = attempt
    this.timedOut = code === 'MR_TIMEOUT'
    const exitCode = fieldOf(cause, 'exitCode')
    this.exitCode = typeof exitCode === 'number' ? exitCode : null
    this.signal = textFieldOf(cause, 'signal') ?? null
  }
}

/** A task never ran, or was stopped. `cause` is the failure behind it, if there is one. */
export class CancelledError extends MillraceError {
  override name = 'CancelledError'
  readonly task: string

  constructor(task: string, reason: string, cause: TaskError | null, title = task) {
    super(
      'MR_CANCELLED',
      `${title} was cancelled: ${reason}`,
      cause ? { cause, hint: cause.shortMessage } : {},
    )
    this.task = task
  }
}

/** A command ended in a way that does not count as success. */
export class ExitError extends MillraceError {
  override name = 'ExitError'
  readonly exitCode: number | null
  readonly signal: string | null

  /** `circumstance` goes on with the sentence; `hint` is for ends that the program itself says nothing of. */
  constructor(
    program: string,
    exitCode: number | null,
    signal: string | null,
    circumstance = '',
    hint?: string,
  ) {
    const end = signal ? `was ended by ${signal}` : `ended with exit code ${exitCode}`
    super('MR_EXIT_CODE', `${program} ${end}${circumstance}`, hint === undefined ? {} : { hint })
    this.exitCode = exitCode
    this.signal = signal
  }
}

/** Our own errors are what they are in every thread. */
export const OWN_ERRORS: readonly Function[] = [MillraceError, TaskError, CancelledError, ExitError]
