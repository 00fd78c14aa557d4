import { MillraceError } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import type { Observer } from '../core/events.ts'
import { nearest } from '../general/nearest.ts'
import { checkObservers } from './observers.ts'
import type { EventHandlers } from './observers.ts'

/** How a run is carried out. The launcher passes them on in MILLRACE_OPTIONS as JSON. */
export interface RunOptions {
  /** CPUs to use. @default all */
  cpus?: number | string
  /** Memory that tasks may claim. @default all */
  memory?: number | string
  /** What this machine has, for tasks that ask for `tags`. */
  tags?: string[]
  /** Machines to use instead of this one: local:4, ssh:user@h1,h2:8, slurm, a file that describes them, or here. */
  nodes?: string
  /** Options of sbatch, for nodes that are asked for as work waits: partition=main,time=1h. Needs nodes such as 0..8. */
  slurm?: string
  /**
   * Which functions and commands are bound to the CPUs that they hold: wide (those with several CPUs), all or off; true is
   * all, and false is off. @default wide
   */
  bind?: boolean | string
  /** Whether CPUs that are one core count as several. @default true */
  hyperThreads?: boolean
  /** The file that describes this machine and its devices, in YAML or JSON. */
  machine?: string
  /** I/O tasks that run at one time. */
  ioExecutors?: number | string
  /** In which order I/O tasks get storage: fcfs, priority, backfill, priority-paper or backfill-paper. @default fcfs */
  ioPolicy?: string
  /** When data that no task will read move to slower storage: off, idle or always. @default always, if there are layers */
  flush?: string
  /** Whether inputs of ready tasks move to faster storage. @default false */
  prefetch?: boolean
  /** How limits of `'auto'` are learned: search, paper (in epochs, one node at a time) or paper-together. @default search */
  learning?: string
  /** Share of the tasks of a kind that the search for its limit may go on for, from 0 to 1. @default 1 */
  learningShare?: number | string
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
  /** Where to write a trace for Paraver: NAME.prv, with NAME.pcf and NAME.row beside it. */
  paraver?: string
  /** The OpenTelemetry collector that gets spans and metrics when the run has ended: http://localhost:4318. */
  otlp?: string
  /** Serve a live page of the run, and print its address. @default false */
  dashboard?: boolean
  /** Port of the page. @default any that is free */
  dashboardPort?: number | string
  /**
   * Measure the steps of attempts: fetching, decoding, running, encoding, committing. They are in `finished` events, stories,
   * traces and `show`. Of tasks that take less than 0.1 ms, one in 64 is measured once a thousand of their kind have ended; `'all'`
   * measures each. @default false
   */
  stepTimes?: boolean | 'all'
  /** Let people pause, cancel and reorder tasks on the page; a second address allows it. @default false */
  control?: boolean
  /** Called with each event of the run; or objects with a handler for each type of event that is of interest. */
  observers?: readonly (Observer | EventHandlers)[]
  /** Use results that earlier runs kept: all, or those of the run with this name. @default false */
  resume?: boolean | string
  /** Which results are kept, and when they are written: auto, all, tasks, groups or off; a number of tasks, or a time. */
  checkpoint?: string
  /** What kept results may take: bytes or '50GB'; those that were not used for longest go first. @default 20GB */
  keep?: number | string
  /** A store of results that runs, users and machines share, in place of .millrace/store; with :ro it is only read. */
  cache?: string
  /** Say at the end which results were used, and why others were not. @default false */
  explain?: boolean
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
  'nodes',
  'slurm',
  'bind',
  'hyperThreads',
  'machine',
  'ioExecutors',
  'ioPolicy',
  'flush',
  'prefetch',
  'learning',
  'learningShare',
  'maxIntermediate',
  'policy',
  'progress',
  'color',
  'trace',
  'graph',
  'picture',
  'paraver',
  'otlp',
  'dashboard',
  'dashboardPort',
  'stepTimes',
  'control',
  'observers',
  'resume',
  'checkpoint',
  'keep',
  'cache',
  'explain',
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
  'MR_NODES',
  'MR_NODE_UNREACHABLE',
  'MR_NODE_VERSION',
  'MR_SLURM',
  'MR_POLICY',
  'MR_DIRECTION',
  'MR_STORE',
  'MR_STORE_VERSION',
]

let configured: RunOptions = {}
let launched: RunOptions | null = null
let isUsed = false

/** The run begins with the options as they are. */
export function optionsAreUsed(): void {
  isUsed = true
}

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
  checkObservers(options.observers)
  if (isUsed) {
    throw new MillraceError('MR_OPTION', 'configure was called after the run had begun', {
      hint: 'Call it before main, and before the first task.',
    })
  }
  configured = { ...configured, ...options }
}

/** Launcher over environment over program over defaults. */
export function runOptions(): RunOptions {
  const { env } = process
  const options: RunOptions = { ...configured }
  if (env['MILLRACE_POLICY']) options.policy = env['MILLRACE_POLICY']
  if (env['MILLRACE_CPUS']) options.cpus = env['MILLRACE_CPUS']
  if (env['MILLRACE_NODES']) options.nodes = env['MILLRACE_NODES']
  if (env['MILLRACE_SLURM']) options.slurm = env['MILLRACE_SLURM']
  if (env['MILLRACE_MEMORY']) options.memory = env['MILLRACE_MEMORY']
  if (env['MILLRACE_MACHINE']) options.machine = env['MILLRACE_MACHINE']
  if (env['MILLRACE_IO_POLICY']) options.ioPolicy = env['MILLRACE_IO_POLICY']
  if (env['MILLRACE_FLUSH']) options.flush = env['MILLRACE_FLUSH']
  if (env['MILLRACE_PREFETCH']) options.prefetch = !isOff(env['MILLRACE_PREFETCH'])
  if (env['MILLRACE_LEARNING']) options.learning = env['MILLRACE_LEARNING']
  if (env['MILLRACE_LEARNING_SHARE']) options.learningShare = env['MILLRACE_LEARNING_SHARE']
  if (env['MILLRACE_IO_EXECUTORS']) options.ioExecutors = env['MILLRACE_IO_EXECUTORS']
  if (env['MILLRACE_MAX_INTERMEDIATE']) options.maxIntermediate = env['MILLRACE_MAX_INTERMEDIATE']
  if (env['MILLRACE_PROGRESS']) options.progress = env['MILLRACE_PROGRESS']
  if (env['MILLRACE_BIND']) options.bind = env['MILLRACE_BIND']
  if (env['MILLRACE_DASHBOARD']) options.dashboard = !isOff(env['MILLRACE_DASHBOARD'])
  const steps = env['MILLRACE_STEP_TIMES']
  if (steps) options.stepTimes = steps === 'all' ? 'all' : !isOff(steps)
  if (env['MILLRACE_CONTROL']) options.control = !isOff(env['MILLRACE_CONTROL'])
  if (env['MILLRACE_RESUME']) options.resume = !isOff(env['MILLRACE_RESUME'])
  if (env['MILLRACE_CHECKPOINT']) options.checkpoint = env['MILLRACE_CHECKPOINT']
  if (env['MILLRACE_CACHE']) options.cache = env['MILLRACE_CACHE']
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
