import type { Datum, Version } from '../core/data/datum.ts'
import type { AfterFailure, AttemptSteps, FailureFacts, TaskUsage } from '../core/events.ts'
import type { Node, NodeDescription } from '../core/schedule/machine.ts'
import type { AfterLoss, LostWith } from '../core/tasks/losses.ts'
import type { Form } from '../core/tasks/form.ts'
import type { Task } from '../core/tasks/task.ts'
import type { ReturnWhy } from '../core/why.ts'
import type { Kept, Stored } from '../model/encoding/stored.ts'
import type { EarlyStart } from './threads/early-wire.ts'
import type { ThreadMessage } from './threads/lane-thread.ts'

/**
 * The seam between the coordinator, which decides, and a machine, which runs tasks.
 *
 * `LocalNode` (local-node.ts) is the form for this machine: threads, processes and files. A remote form sends the same
 * calls over a connection to an agent, and an agent drives a `LocalNode` of its own. The coordinator holds a list of
 * nodes; a task goes to `nodes[task.node]`.
 *
 * Ownership
 * - The core owns `task.state`, `task.attempt` and the queues of lanes. A node reads them and never writes them.
 * - The node owns the attempt from `start` until it has said exactly one of `finished`, `failed`, `returned` and `stopped`
 *   about it. Until then no other part touches the attempt's files, memory, thread or process. After it the node has
 *   forgotten the attempt, and the same task may be started again, here or elsewhere.
 * - The values of outputs are owned by the node that made them. Before it says `finished` or `released` it has put into
 *   `version.value` what readers need: the value (`Kept`) or a `Location`.
 * - What a task called (its session and its group) is owned by the coordinator.
 *
 * Order
 * - Calls are carried out in the order in which they are made. Tasks that are started on one lane begin in that order.
 * - Events about one attempt come in the order in which things happened: `began`, then any number of `released`, `said`
 *   and `givenUp`, then the one end. `began` is optional: an end implies it. There is no order between different attempts.
 * - A node never calls an event during `start`, `recall`, `hurry` or `answer` for another task than the one it was called
 *   for. It may do so from `flush`, `drain`, `tick` and from the event loop.
 * - Events of an attempt that has ended are dropped by the node; a remote form compares task, attempt and incarnation.
 *
 * Batches
 * - `start` may only queue. What was started together leaves with the `flush` that follows the decisions.
 * - Results need not be announced one by one. `drain` takes those that have arrived.
 */
export interface TaskNode {
  /** The core's view of the machine: its lanes, with the tasks on them. Read only. */
  readonly machine: Node

  /** CPUs, memory, tags and devices, as the core has to know them before the first task. */
  describe(): NodeDescription

  /** Every attempt on it waits for something else. */
  readonly isAtRest: boolean

  /** There is no attempt on it. */
  readonly isIdle: boolean

  /**
   * Loads ahead what the first tasks of these forms will need. Resolves when programs can be started at once; null when
   * there is nothing worth waiting for.
   */
  warmUp(forms: ReadonlySet<Form>): Promise<void> | null

  /**
   * Runs the attempt `task.attempt` on `task.lane`. What to run is in `task.payload` (a `Job`: definition, arguments, slots);
   * the inputs are in `task.accesses`, whose versions have their values or the place to fetch them from. The task is passed by
   * reference, and the local form keeps it: nothing is copied.
   */
  start(task: Task): void

  /**
   * Stops the attempt in any state. Ends with `stopped`, or with `finished` when the end was on its way. The task is
   * `stopping` already.
   */
  stop(task: Task): void

  /**
   * Takes these attempts back from their lanes, except those that have begun. Ends with `returned` for each that had not;
   * nothing is heard of the others. May end with `kept` for all of them, at once, when results have shown that the lanes are
   * not as full as they seemed.
   */
  recall(tasks: readonly Task[], why: ReturnWhy): void

  /** These versions are not there any more: tasks that still wait for them on their lanes are `returned`. */
  inputsLost(versions: ReadonlySet<Version>, why: ReturnWhy): void

  /** Ends the program of a task that has lost its input; `returned` follows. Does nothing for one without a program. */
  abort(task: Task): void

  /** The program or a task waits for this running task: announce its result at once. */
  hurry(task: Task): void

  /** Answers a question of a task that was `said` at this place; `isMoved` when its buffers may move there. */
  answer(place: number, request: number, ok: boolean, value: Stored, isMoved?: boolean): void

  /** Makes a file that a task there waited for readable for it; gives its path there. */
  bringFile(path: string): Promise<string>

  /** Sends what was started, recalled and answered since the last call. */
  flush(): void

  /** Takes results that have arrived, for a program that does not let the event loop run. */
  drain(): void

  /**
   * Called all the time while tasks are alive, every 10 to 50 ms: looks after results that were not announced. Returns
   * whether the next call is to come soon.
   */
  tick(): boolean

  /** Stops all threads and programs and waits for them. No attempt is alive. */
  end(): Promise<void>

  /** The same at the end of the process, where nothing can be waited for. */
  endNow(): void
}

/** How an attempt ended well. Times are on the clock of the run; a remote form converts them. */
export interface Ending {
  readonly startedAt: number
  /** Milliseconds. */
  readonly took: number
  readonly usage?: TaskUsage | null | undefined
  /** Null where steps are not measured. */
  readonly steps?: AttemptSteps | null
  /** Nothing was written, because the files in place are right. */
  readonly kept?: boolean | undefined
}

/** How an attempt failed. */
export interface Failure {
  readonly error: unknown
  readonly facts: FailureFacts
  /** Where what it printed is kept, if it printed. */
  readonly log?: string | undefined
  readonly usage: TaskUsage | null
}

/** A value that a running task releases: of a generator the value at this index, else the result at this index. */
export interface EarlyValue {
  readonly index: number
  readonly value: Kept
  readonly bytes: number
  /** Checksum, for the comparison with what another attempt makes. */
  readonly check: number
  readonly at: number
}

/** What a running task says to the coordinator: calls, questions, groups, and what becomes of its streams. */
export type TaskMessage = Exclude<
  ThreadMessage,
  { type: 'published' | 'guarded' | 'given-back' | 'blocking' }
>

/** What a node tells the coordinator. Each call may lead to new decisions, which are made later and never inside the call. */
export interface NodeEvents {
  /** The attempt began at this time. Tasks that queue on a lane often say so only with their end. */
  began(task: Task, at: number): void
  /** A value is complete although the task runs on. */
  released(task: Task, startedAt: number, value: EarlyValue): void
  /** A file, or a stream of a command, is complete although the task runs on; `version.value` is set. */
  committed(task: Task, version: Version): void
  /** The program of the task runs: those that read what it writes as it grows may start. */
  flows(task: Task): void
  /** Ended well; all outputs are in place. `now` is a time of the clock, read not long ago. */
  finished(task: Task, ending: Ending, now: number): void
  /** Failed by itself. What it wrote is dropped, or kept where `afterFailure` was `ignore`. */
  failed(task: Task, failure: Failure): void
  /** Had not begun, or was lost through no fault of its own: it does not count as an attempt. */
  returned(task: Task, why: ReturnWhy): void
  /** These were asked back and stay where they are for now; they may be asked back again. */
  kept(tasks: readonly Task[]): void
  /** Was told to stop, and has. */
  stopped(task: Task): void
  /** A message of a running task. `place` is where an answer goes. */
  said(task: Task, message: TaskMessage, place: number): void
  /** It has ended, and what it made is still on its way here: it needs no CPU meanwhile. */
  travels(task: Task): void
  /** It will not go on: its timeout has passed, or it was lost. What it called is to be cancelled. An end follows. */
  givenUp(task: Task): void
  /** Nothing more than has been told is known of this lane at `now`. Returns whether its task takes longer than expected. */
  laneSilent(lane: number, now: number): boolean
  /** A thread, or the process that starts programs, ended before its time. Its attempts end by events of their own. */
  died(lane: number, reason: string): void
  /** Something for the user to read. */
  note(level: 'info' | 'warning', text: string): void
  /** Something has changed that the core should look at, and that is none of the above. */
  changed(): void
}

/** What the parts of a node use of the program that drives it. */
export interface NodeHost {
  /** Milliseconds since the run began. */
  now(): number
  /** The same for a moment on the clock of `performance.now` of this process. */
  timeOf(moment: number): number
  /** What will be done if the attempt fails: decided by the core, needed by the node before it drops or keeps files. */
  afterFailure(task: Task): AfterFailure
  /** What follows when the attempt was lost; `culprit` is the task that is known to be the reason, if one is. */
  afterLoss(task: Task, lostWith: LostWith, culprit: Task | null): AfterLoss
  /** All output files are in place. Resolves when the run has taken hold of those that it keeps; null where it keeps none. */
  filesMade(task: Task): Promise<void> | null
  /** There is no further attempt at the task. */
  lastAttempt(task: Task): void
  /** Buffers from this size on that it makes may stay on their machine, because it can make them again; 0: none. Bytes. */
  staysFrom(task: Task): number
  /** What it wrote, of this many bytes, may stay on its machine, because it can make it again. */
  filesStay(task: Task, bytes: number): boolean
  /** Brings a file that is on nodes only; one that is lost is made again first. Rejects if it never comes. */
  here(version: Version): Promise<void>
  /** It is about to be read: what was lost with a node is made again, and is not there for now. */
  want(version: Version): void
  /** What an attempt that starts now has to know of values that earlier ones released; null for nearly all tasks. */
  earlyStart(task: Task): EarlyStart | null
  /** How many tasks have been called so far. */
  readonly taskCount: number
  /** Data whose paths are in a folder. */
  dataInside(folder: string): readonly Datum[]
  /** No task is given the datum any more. */
  remove(datum: Datum): void
  /** Resolves when the version is committed, failed or cancelled. */
  settled(version: Version): Promise<void>
  /** Resolves when no task reads the version any more. */
  unread(version: Version): Promise<void>
}
