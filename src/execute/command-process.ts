import type { TaskUsage } from '../core/events.ts'
import { MillraceError } from '../core/errors.ts'
import type { ParsedLimits } from '../model/limits.ts'

export interface CommandRequest {
  argv: readonly string[]
  cwd: string
  env: Readonly<Record<string, string>>
  stdin: string | null
  stdout: string | null
  stderr: string | null
  /** Where output goes that has no file of its own; null to let it through. */
  log: string | null
  /** CPUs that it may run on; null for all. */
  cpus: readonly number[] | null
  limits: ParsedLimits | null
}

export interface CommandResult {
  exitCode: number | null
  signal: string | null
  /** The log exists, because something was printed. */
  printed: boolean
  /** When it began, on the clock of `performance.now`, and how long it took; milliseconds. */
  beganAt: number
  took: number
  /** Null where the system does not tell. */
  usage: TaskUsage | null
}

/** One program and everything it starts: a process group that is stopped as a whole. */
export interface CommandProcess {
  run(request: CommandRequest): Promise<CommandResult>
  /** Asks it to end, and ends it by force when it does not. */
  stop(): void
}

/** Groups that are stopped get this long to end by themselves before they are killed; milliseconds. */
export const GRACE = 2000

export function spawnError(program: string, cwd: string, code: string | undefined, message: string): Error {
  const why = code === 'ENOENT' ? `it was not found, or ${cwd} does not exist` : message
  return new MillraceError('MR_SPAWN', `${program} could not be started: ${why}`)
}
