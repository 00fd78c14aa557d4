/**
 * Every change of state of a run is one of these events. Journal, terminal, traces and graphs are
 * functions of this stream and of nothing else; a simulated run emits the same events as a real one.
 *
 * Times (`at`) are milliseconds since the start of the run, on a monotonic clock. The events of one task
 * come in order. Between tasks `at` may step back by up to one batch, because threads report in batches:
 * readers that need global order sort.
 */

import type { StorageDemand } from './tasks/demand.ts'
import type { Form } from './tasks/form.ts'
import type { CancelKind, ReturnKind } from './why.ts'

export { hadNotBegun } from './why.ts'

/** Why a task failed, in a form that can be written down: the error object itself stays in the program. */
export interface FailureFacts {
  /** Stable code for failures that Millrace recognises (`MR_TIMEOUT`, `MR_EXIT_CODE`, …), else the error's own. */
  code?: string
  /** The error's class name, such as `TypeError`. */
  name: string
  message: string
  stack?: string
  timedOut?: boolean
  exitCode?: number
  signal?: string
  /** The command line of a command task, as one would type it. */
  command?: string
  cwd?: string
  /** The command cannot be tried by itself: it reads what other tasks of the run write at the same time. */
  needsRun?: true
  /** What the task printed: all of it, or its first and last lines. */
  tail?: string
  /** Of a `tail` that is not all: how many of its lines are the first ones, and how many lines there are, if counted. */
  tailCut?: { first: number; lines: number | null }
}

/** What follows a failure: another attempt, or one of the four forms of `onFailure` taking effect. */
export type AfterFailure = 'retry' | 'fail' | 'ignore' | 'cancelSuccessors'

/**
 * What an attempt used, together with the processes that it started and waited for, as the system counts it.
 * Bytes asked for that did not come from a device came from the page cache.
 */
export interface TaskUsage {
  /** CPU time, of user and system. */
  cpuMs: number
  /** Memory of its largest process at its largest. */
  peakBytes: number
  /** By read calls. */
  askedBytes: number
  /** From storage devices. */
  readBytes: number
  /** By write calls. */
  writtenBytes: number
}

/**
 * Where the time of an attempt went that ended well; milliseconds. The steps follow each other in this order, from `from` on,
 * but for `wait`, which is within `run`. A program has no `decode` and `encode`.
 */
export interface AttemptSteps {
  /** When the first step began. */
  from: number
  /** Its input files were found, copied where it changes them, and places for its outputs made. */
  fetch: number
  /** It waited for its turn, with its files ready. */
  queue: number
  /** Its arguments were decoded. */
  decode: number
  /** Its own code ran. */
  run: number
  /** It waited for results of tasks that it called, or for values of a stream. */
  wait: number
  /** Its results were encoded. */
  encode: number
  /** The coordinator had not taken the results yet. */
  report: number
  /** Its output files were brought to their places. */
  commit: number
}

/** The steps in their order. */
export const STEPS = [
  'fetch',
  'queue',
  'decode',
  'run',
  'wait',
  'encode',
  'report',
  'commit',
] as const satisfies readonly (keyof AttemptSteps)[]

export type Outcome = 'ok' | 'failed' | 'interrupted'

/** What people can do on the live page. */
export type ControlAction = 'pause' | 'go-on' | 'stop' | 'cancel' | 'priority'

/** A device as reports know it. */
export interface DeviceFacts {
  name: string
  path: string
  node: number | null
  read: number | null
  write: number | null
  capacity: number | null
}

/** How I/O is treated in a run. */
export interface IoFacts {
  policy: string
  flush: 'off' | 'idle' | 'always'
  prefetch: boolean
}

/** What is asked of a node, in a form that can be written down; see `Demand`. */
export interface DemandFacts {
  cpus: number
  memory: number
  tags: readonly string[]
  io: boolean
  storage: StorageDemand | null
  /** Absent for none. */
  gpus?: number
}

/** What a ready task with I/O lacks. Where it could go to several devices: room, if none of them has it. */
export type Lack = 'room' | 'executor' | 'device'

export type MovePhase = 'started' | 'done' | 'failed' | 'dropped'

export type RunEvent =
  | {
      type: 'run-started'
      at: number
      /** Memorable name, unique among the runs kept in this folder. */
      run: string
      version: string
      /** ISO 8601; the only wall-clock time in the stream. */
      wallTime: string
      program: string
      args: string[]
      /** The command that starts it again, where it is not `millrace run` with program and arguments. */
      again?: string
      cwd: string
      pid: number
      nodes: { name: string; cpus: number; memory: number; ioExecutors?: number }[]
      /** Devices are named by their place in this list; `node` is null for shared ones, numbers are null if unknown. */
      devices?: DeviceFacts[]
      policy: string
      /** How I/O is treated, where there are devices. */
      io?: IoFacts
      /** True when the run came from the simulator. */
      simulated: boolean
    }
  /** A kind is what `task()` or `command()` defined; it precedes the first task of that kind. */
  | {
      type: 'kind-defined'
      at: number
      kind: number
      name: string
      form: Form
      module: string
    }
  /** What tasks ask for while they run; it precedes the first of them. */
  | ({ type: 'demand-defined'; at: number; demand: number } & DemandFacts)
  | {
      type: 'submitted'
      at: number
      task: number
      kind: number
      /** What it asks for; absent for one CPU and nothing else. */
      demand?: number
      /** The task that called this one, or null for the main program. */
      parent: number | null
      group: string | null
      /** What tells it from others of its kind, where its definition says: `s=s4`. */
      label?: string
      priority: number
      /** Ids of the data versions it waits for and of those it makes; together they are the graph. */
      reads: number[]
      writes: number[]
      /** Names of versions that have one: files and directories. */
      files?: { version: number; path: string }[]
    }
  /** All inputs are there; it waits for resources. */
  | { type: 'ready'; at: number; task: number }
  /** `lane` is the slot of that node that it occupies; no two tasks run on one lane at one time. */
  | {
      type: 'started'
      at: number
      task: number
      attempt: number
      node: number
      lane: number
      cpus: number
      /** Which version of the task runs, when `implement` gave it several. */
      implementation?: string
      /** The device that its files go to, or that it reads from. */
      device?: number
    }
  /** A task that waits for tasks it called gives its lane back, and takes one when it goes on. */
  | { type: 'blocked'; at: number; task: number; reason: string }
  | { type: 'resumed'; at: number; task: number; node: number; lane: number }
  /** `usage` is there for commands, where the system tells; `steps` where the run was told to measure them. */
  | {
      type: 'finished'
      at: number
      task: number
      attempt: number
      usage?: TaskUsage
      steps?: AttemptSteps
      /** The attempt found that the files in place are right, and made none; absent where it made them. */
      kept?: true
    }
  /** It did not run: its results were kept by an earlier run. */
  | { type: 'kept'; at: number; task: number }
  | {
      type: 'failed'
      at: number
      task: number
      attempt: number
      failure: FailureFacts
      next: AfterFailure
      /** Path of the file that keeps what the task printed, if it printed. */
      log?: string
      usage?: TaskUsage
    }
  /**
   * Will never run, or was stopped while running. `cause` is the failed task behind it, if one is. `reason` says it in words.
   * `why` is absent in journals that are older than it.
   */
  | { type: 'cancelled'; at: number; task: number; cause: number | null; reason: string; why?: CancelKind }
  /**
   * The attempt had not begun, or was lost through no fault of its own; the task waits to start again. `reason` says it in
   * words. `why` is absent in journals that are older than it.
   */
  | { type: 'returned'; at: number; task: number; reason: string; why?: ReturnKind }
  /**
   * The task has made this version and goes on. A generator makes versions that had no name when it
   * was submitted: this is the first that is heard of them.
   */
  | { type: 'released'; at: number; task: number; version: number }
  /** `bytes` of a file; 0 if not measured. */
  | { type: 'committed'; at: number; version: number; bytes: number }
  /** A file that no task of the run made is read for the first time. */
  | { type: 'found'; at: number; version: number; bytes: number }
  /** A node takes part from now on; `node` is its number behind those that the run began with. */
  | { type: 'node-joined'; at: number; node: number; name: string; cpus: number; memory: number }
  /** It takes part no more: it was lost, or was given back. */
  | { type: 'node-left'; at: number; node: number; isLost: boolean; reason: string }
  /**
   * How loaded the machine of a node is, while a live page is open: memory of the process that runs tasks, memory that can be
   * had of all there is, and how many threads ran or waited for a CPU in the last minute.
   */
  | {
      type: 'measured'
      at: number
      node: number
      rss: number
      available: number
      memory: number
      load: number
    }
  | { type: 'thread-died'; at: number; node: number; lane: number; reason: string }
  /** What is in use of a device: bytes per second that are given out, bytes that are taken, and tasks. */
  | {
      type: 'device'
      at: number
      device: number
      read: number
      write: number
      used: number
      running: number
      waiting: number
    }
  /** The device cannot be used any more. */
  | { type: 'device-failed'; at: number; device: number; reason: string }
  /** A ready I/O task does not start; sent for the first task of each line. */
  | { type: 'waits'; at: number; task: number; reason: string; lacks?: Lack }
  /** One epoch of learning: this number of tasks ran at one time and took `mean` milliseconds each. */
  | {
      type: 'trial'
      at: number
      kind: number
      device: number
      bandwidth: number
      concurrency: number
      mean: number
    }
  /** The limit that tasks of a kind have on a device from now on, and why. */
  | {
      type: 'verdict'
      at: number
      kind: number
      device: number
      bandwidth: number
      concurrency: number
      /** Tasks of the kind that were spent on learning so far. */
      learned: number
      /** It is the best for this number of waiting tasks; no number where it is not chosen for one. */
      waiting?: number
      reason: string
    }
  | {
      type: 'move'
      at: number
      move: number
      /** Dropped: it was not needed any more. */
      phase: MovePhase
      why: 'flush' | 'prefetch'
      version: number
      from: number
      to: number
      bytes: number
      reason?: string
    }
  /** A file that programs pass on while it grows: how far it is, who writes it, and which steps read it or wait for it. */
  | {
      type: 'stream'
      at: number
      path: string
      state: 'absent' | 'growing' | 'committed' | 'failed'
      bytes: number
      producers: string[]
      readers: { name: string; waits: string | null }[]
    }
  /**
   * A value that takes at least 64 KiB is in memory; 0 `bytes`: not any more. `stays`: only on the node of the task that made
   * it, until it is wanted elsewhere.
   */
  | { type: 'value'; at: number; version: number; bytes: number; stays?: true }
  /** A temporary file was deleted, because no task will read it. */
  | { type: 'removed'; at: number; version: number }
  /** What temporary files take now, where they have a bound. */
  | { type: 'intermediate'; at: number; bytes: number; limit: number }
  /** What a task was called with, in words; told where a live page was asked for. */
  | { type: 'arguments'; at: number; task: number; text: string }
  /** Someone did this on the live page. `what` names the task or the kind, and `count` the tasks of the kind that it concerned. */
  | {
      type: 'control'
      at: number
      action: ControlAction
      by: string
      task?: number
      what?: string
      count?: number
      priority?: number
    }
  /** Something that a person should read. */
  | { type: 'note'; at: number; level: 'info' | 'warning'; text: string }
  | { type: 'interrupted'; at: number; signal: string; times: number }
  | { type: 'run-ended'; at: number; outcome: Outcome; message?: string }

export type RunEventType = RunEvent['type']

export type Observer = (event: RunEvent) => void
