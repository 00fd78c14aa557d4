import type { TaskUsage } from '../../core/events.ts'
import { MillraceError } from '../../core/errors.ts'
import type { ParsedLimits } from '../../model/options/process-limits.ts'

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
  /** Programs of one lane are run one after the other; null for a program that starts at once. */
  lane: number | null
}

export interface CommandResult {
  /** It was called back before it began. */
  cameBack: boolean
  exitCode: number | null
  signal: string | null
  /** The log exists, because something was printed. */
  printed: boolean
  /** It was killed while the system had no memory left; false where that is not known. */
  starved: boolean
  /** When it began, on the clock of `performance.now`, and how long it took; milliseconds. */
  beganAt: number
  took: number
  /** Null where the system does not tell. */
  usage: TaskUsage | null
}

/** The end of a program that was stopped, or called back, before it began. */
export const neverBegan = (cameBack = false): CommandResult => ({
  cameBack,
  exitCode: null,
  signal: 'SIGTERM',
  printed: false,
  starved: false,
  beganAt: performance.now(),
  took: 0,
  usage: null,
})

/** Hears, once, what became of a program. Not a promise: there are thousands of programs in a second. */
export interface ProcessEnd {
  ended(result: CommandResult): void
  failed(error: unknown): void
}

/** One program and everything it starts: a process group that is stopped as a whole. */
export interface CommandProcess {
  start(request: CommandRequest, end: ProcessEnd): void
  /** Asks it to end, and ends it by force when it does not. */
  stop(): void
  /** If it waits on its lane for others to end, it does not begin any more. */
  callBack(): void
}

/** Groups that are stopped get this long to end by themselves before they are killed; milliseconds. */
export const GRACE = 2000

/** The process that starts programs has ended, and all that it had started with it: none of them is to blame. */
export class SpawnerLost extends MillraceError {
  /** Its whole machine was lost. */
  readonly isMachine: boolean = false

  constructor() {
    super('MR_SPAWN', 'the process that starts programs has ended, and this one with it')
  }
}

/** What was under way on the machine is lost with it. */
export const isMachineLost = (error: unknown): error is SpawnerLost =>
  error instanceof SpawnerLost && error.isMachine

const HINTS: Record<string, { hint: string } | undefined> = {
  E2BIG: {
    hint: 'Its words are longer in all than the system allows. Give it a file with the names in it, or a folder, or use xargs.',
  },
}

export function spawnError(program: string, cwd: string, code: string | undefined, message: string): Error {
  const why = code === 'ENOENT' ? `it was not found, or ${cwd} does not exist` : message
  return new MillraceError('MR_SPAWN', `${program} could not be started: ${why}`, HINTS[code ?? ''])
}
