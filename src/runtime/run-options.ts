import { MillraceError } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { nearest } from '../general/nearest.ts'

/** How a run is carried out. The launcher passes them on in MILLRACE_OPTIONS as JSON. */
export interface RunOptions {
  /** CPUs to use. @default all */
  cpus?: number | string
  /** Memory that tasks may claim. @default all */
  memory?: number | string
  /** What this machine has, for tasks that ask for `tags`. */
  tags?: string[]
  /** Bind each command to the CPUs that it holds. @default false */
  bind?: boolean
  /** The file that describes this machine and its devices, in YAML or JSON. */
  machine?: string
  /** I/O tasks that run at one time. */
  ioExecutors?: number | string
  /** In which order I/O tasks get storage: fcfs, priority or backfill. @default fcfs */
  ioPolicy?: string
  /** When data that no task will read move to slower storage: off, idle or always. @default always, if there are layers */
  flush?: string
  /** Whether inputs of ready tasks move to faster storage. @default false */
  prefetch?: boolean
  /** Temporary files take at most so much room at one time: bytes or '50GB'. */
  maxIntermediate?: number | string
  /** fifo, lifo, fifo-data, hrf, lifo+hrf, rank, or the path of a module that exports a policy. */
  policy?: string
  /** live, plain, json or none. @default live on a terminal; for a program started by itself, none elsewhere */
  progress?: string
  color?: boolean
  /** Where to write a trace that opens in Perfetto. */
  trace?: string
  /** Where to write the graph of tasks, in DOT. */
  graph?: string
  /** Where to write a picture of the run, in SVG. */
  picture?: string
  /** Keep a journal and logs in .millrace/runs. @default true */
  journal?: boolean
  /** Started by `millrace run`. */
  launched?: boolean
  /** The command line that started it, for people who want to start it again. */
  again?: string
  /** The folder that has .millrace. @default the working directory */
  folder?: string
}

const KNOWN: (keyof RunOptions)[] = [
  'cpus',
  'memory',
  'tags',
  'bind',
  'machine',
  'ioExecutors',
  'ioPolicy',
  'flush',
  'prefetch',
  'maxIntermediate',
  'policy',
  'progress',
  'color',
  'trace',
  'graph',
  'picture',
  'journal',
  'launched',
  'again',
  'folder',
]

/** Errors in how Millrace is used: exit code 2. Failures of tasks and programs are 1. */
export const USAGE_CODES: readonly ErrorCode[] = [
  'MR_OPTION',
  'MR_UNIT',
  'MR_ENV',
  'MR_CONSTRAINT',
  'MR_MACHINE',
  'MR_POLICY',
  'MR_DIRECTION',
]

let configured: RunOptions = {}
let launched: RunOptions | null = null

/** Options of the embedded runtime, given before the first task is called. */
export function configure(options: RunOptions): void {
  for (const key of Object.keys(options)) {
    if ((KNOWN as string[]).includes(key)) continue
    const close = nearest(key, KNOWN)
    throw new MillraceError(
      'MR_OPTION',
      `configure has no option '${key}'${close ? `; did you mean '${close}'?` : ''}`,
      {
        hint: `Options: ${KNOWN.join(', ')}.`,
      },
    )
  }
  configured = { ...configured, ...options }
}

/** Launcher over environment over program over defaults. */
export function runOptions(): RunOptions {
  const { env } = process
  const options: RunOptions = { ...configured }
  if (env['MILLRACE_POLICY']) options.policy = env['MILLRACE_POLICY']
  if (env['MILLRACE_CPUS']) options.cpus = env['MILLRACE_CPUS']
  if (env['MILLRACE_MEMORY']) options.memory = env['MILLRACE_MEMORY']
  if (env['MILLRACE_MACHINE']) options.machine = env['MILLRACE_MACHINE']
  if (env['MILLRACE_IO_POLICY']) options.ioPolicy = env['MILLRACE_IO_POLICY']
  if (env['MILLRACE_FLUSH']) options.flush = env['MILLRACE_FLUSH']
  if (env['MILLRACE_PREFETCH']) options.prefetch = !isOff(env['MILLRACE_PREFETCH'])
  if (env['MILLRACE_IO_EXECUTORS']) options.ioExecutors = env['MILLRACE_IO_EXECUTORS']
  if (env['MILLRACE_MAX_INTERMEDIATE']) options.maxIntermediate = env['MILLRACE_MAX_INTERMEDIATE']
  if (env['MILLRACE_PROGRESS']) options.progress = env['MILLRACE_PROGRESS']
  if (env['MILLRACE_JOURNAL']) options.journal = !isOff(env['MILLRACE_JOURNAL'])
  return Object.assign(options, (launched ??= takeLaunched()))
}

const isOff = (value: string): boolean => ['0', 'off', 'false', 'no'].includes(value)

/** They are meant for this process: programs that tasks start must not write their traces over ours. */
function takeLaunched(): RunOptions {
  const text = process.env['MILLRACE_OPTIONS']
  if (!text) return {}
  try {
    const options = JSON.parse(text) as RunOptions
    delete process.env['MILLRACE_OPTIONS']
    return options
  } catch (error) {
    throw new MillraceError('MR_OPTION', 'MILLRACE_OPTIONS is not JSON', { cause: error })
  }
}
