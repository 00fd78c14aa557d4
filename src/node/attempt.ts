import { MillraceError } from '../core/errors.ts'
import type { TaskUsage } from '../core/events.ts'
import type { Task } from '../core/tasks/task.ts'
import type { ReturnWhy } from '../core/why.ts'
import type { Stored } from '../model/encoding/stored.ts'
import type { Away } from '../storage/away.ts'
import type { ApartFile } from './files/apart-files.ts'
import type { EarlyStart } from './threads/early-wire.ts'
import type { SentList } from './threads/sent-lists.ts'
import type { Timeout } from './timeouts.ts'

/**
 * preparing  its files are being made ready
 * held       waits here for its turn on its lane
 * waiting    waits for a value that a thread has, or for the process that starts programs
 * sent       with its thread or its program; it may still wait there for its turn
 * killed     its thread is being stopped because of it
 * settling   ended well; its files are being put in place
 * failing    failed; what it wrote is dropped, or kept where failures are ignored
 * returning  lost through no fault of its own; what it wrote is dropped
 * stopping   cancelled, and not running any more; what it wrote is dropped
 * over       the coordinator has been told how it ended
 */
export type AttemptState =
  | 'preparing'
  | 'held'
  | 'waiting'
  | 'sent'
  | 'killed'
  | 'settling'
  | 'failing'
  | 'returning'
  | 'stopping'
  | 'over'

export const ATTEMPT_STATES: readonly AttemptState[] = [
  'preparing',
  'held',
  'waiting',
  'sent',
  'killed',
  'settling',
  'failing',
  'returning',
  'stopping',
  'over',
]

/** An attempt that is taken back, or whose task has no files, is over at once. */
const LEGAL: Record<AttemptState, readonly AttemptState[]> = {
  preparing: ['held', 'waiting', 'sent', 'failing', 'returning', 'stopping'],
  held: ['waiting', 'sent', 'failing', 'returning', 'stopping', 'over'],
  waiting: ['sent', 'failing', 'returning', 'stopping'],
  // An I/O task that has not begun may be sent to another thread.
  sent: ['sent', 'killed', 'settling', 'failing', 'returning', 'stopping', 'over'],
  killed: ['settling', 'failing', 'returning', 'stopping', 'over'],
  settling: ['failing', 'returning', 'stopping', 'over'],
  // What looks like a failure of the task may turn out to be one of its device.
  failing: ['failing', 'returning', 'stopping', 'over'],
  returning: ['over'],
  stopping: ['over'],
  over: [],
}

/** The story is kept in one small integer: a state in four bits, the last seven of them. */
const BITS = 4
const KEPT = 0xfffffff

/** The way that nearly all attempts go comes first, and needs no table. */
const isLegal = (from: AttemptState, to: AttemptState): boolean =>
  (from === 'preparing' && to === 'sent') || (from === 'sent' && to === 'over') || LEGAL[from].includes(to)

const SENT = ATTEMPT_STATES.indexOf('sent')
const OVER = ATTEMPT_STATES.indexOf('over')
const codeOf = (state: AttemptState): number =>
  state === 'sent' ? SENT : state === 'over' ? OVER : ATTEMPT_STATES.indexOf(state)

/** A program, or a function in the coordinator. */
export interface Stoppable {
  stop(): void
  /** If it waits for its turn on a lane, it does not begin any more. */
  callBack?(): void
}

/** What an attempt of a command has. */
export interface Program {
  process: Stoppable | null
  /** Why it was called back from its lane; it may have begun before. */
  recalled: ReturnWhy | null
  /** As it was started; null before that. */
  line: { readonly words: readonly string[]; readonly cwd: string } | null
  /** When it has ended, where the system counts it. */
  usage: TaskUsage | null
}

/** Memory that went with an attempt and that the coordinator has to look after. */
export interface AttemptMemory {
  /** Values whose buffers it was lent. */
  lent: readonly Stored[]
  /** Values that its thread is to put into shared memory for others too. */
  published: readonly Stored[]
  /** It was given memory that exists only once, and cannot start again without it. */
  consumed: boolean
  /** Copies of memory that it writes in place, to be put back when its thread ends under it. */
  backups: { target: Uint8Array; backup: Uint8Array }[] | null
}

const NO_VALUES: readonly Stored[] = []

/** One attempt at a task on this machine, from its start until the coordinator has been told how it ended. */
export class Attempt {
  /** Changed by `move` only. */
  state: AttemptState = 'preparing'
  #story = 0
  /** The node that it was started on: a blocked task has none in the core. */
  node = -1
  /** The thread that it was sent to. */
  thread = -1
  /** Its place in the ring of its thread; null when it went as a message or is a program. */
  position: number | null = null
  /** Counts what is sent: what went to a thread first is what it has begun with. */
  order = 0
  /** Paths of its file slots; for written ones, where the attempt writes. */
  paths: (string | null)[] | null = null
  /** The same as the task sees them, on a node that does not see our folders. */
  seen: readonly (string | null)[] | null = null
  /** It is on such a node. */
  isApart = false
  /** What went there for it. */
  apart: readonly ApartFile[] | null = null
  /** By slot: what it reads or changes that is on nodes only. */
  aways: Map<number, Away> | null = null
  /** By the path where it was written: what it made and stays there. */
  stayed: ReadonlyMap<string, Away> | null = null
  /** What it has to know of values that earlier attempts released. */
  early: EarlyStart | null = null
  memory: AttemptMemory | null = null
  /** Lists that went with it, of which the thread may have had the beginning. */
  lists: readonly SentList[] | null = null
  program: Program | null = null
  timeout: Timeout | null = null
  /** When its files were made ready, and how long that took; where steps are measured. */
  fetched: { readonly at: number; readonly took: number } | null = null

  /** With its thread or program, and not known to have ended. */
  get isSent(): boolean {
    return this.state === 'sent' || this.state === 'killed'
  }

  /** The node works on its files or on its end; whether it is to stop is looked at afterwards. */
  get isBusy(): boolean {
    const { state } = this
    return state !== 'sent' && state !== 'held' && state !== 'waiting' && state !== 'killed'
  }

  get isOverdue(): boolean {
    return this.timeout !== null && this.timeout.isPassed
  }

  get isConsumed(): boolean {
    return this.memory !== null && this.memory.consumed
  }

  /** It has no memory that has to come back, or to be as it was before. */
  get owesNothing(): boolean {
    const { memory } = this
    return !memory || (!memory.backups && memory.lent.length === 0 && memory.published.length === 0)
  }

  noteAway(slot: number, away: Away): void {
    ;(this.aways ??= new Map()).set(slot, away)
  }

  withMemory(): AttemptMemory {
    return (this.memory ??= { lent: NO_VALUES, published: NO_VALUES, consumed: false, backups: null })
  }

  withProgram(): Program {
    return (this.program ??= { process: null, recalled: null, line: null, usage: null })
  }

  /** The only place where the state changes; what is not legal throws with the story. */
  move(to: AttemptState, task: Task): void {
    if (!isLegal(this.state, to)) {
      throw new MillraceError(
        'MR_INTERNAL',
        `attempt ${task.attempt} of ${task.name} cannot go from ${this.state} to ${to}. Its story: ${this.story()}`,
      )
    }
    this.#story = ((this.#story << BITS) | codeOf(to)) & KEPT
    this.state = to
  }

  /** Its last states; `preparing` is where all begin. */
  story(): string {
    const states: string[] = []
    for (let rest = this.#story; rest > 0; rest >>= BITS) {
      states.unshift(ATTEMPT_STATES[rest & ((1 << BITS) - 1)] as string)
    }
    return ['preparing', ...states].join(', ')
  }

  /** Makes it an attempt that has not begun; false where it has more than a way through a thread behind it. */
  reset(): boolean {
    if (this.paths || this.early || this.memory || this.program || this.timeout) return false
    this.state = 'preparing'
    this.#story = 0
    this.position = null
    this.lists = null
    this.fetched = null
    return true
  }
}

/** The task has not been stopped. A task that reads a growing file stays `blocked`. */
export const isLive = (task: Task): boolean => task.state === 'running' || task.state === 'blocked'
