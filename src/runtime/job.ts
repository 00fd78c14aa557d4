import type { TaskUsage } from '../core/events.ts'
import type { Task } from '../core/task.ts'
import { keptSlots } from '../model/call.ts'
import type { Argument, KeptSlot, Slot } from '../model/call.ts'
import type { Definition } from '../model/definition.ts'
import type { EarlyStart } from '../execute/early-wire.ts'
import type { Stored } from '../model/stored.ts'
import type { Session } from './session.ts'

/** What the runtime keeps with a task of the core. There may be millions: fields that are rare are in `live`. */
export class Job {
  readonly definition: Definition
  readonly args: Argument[]
  readonly slots: readonly KeptSlot[]
  /** The program, or the task, that called it. */
  readonly caller: Session
  live: LiveJob | null = null

  constructor(definition: Definition, args: Argument[], slots: readonly Slot[], caller: Session) {
    this.definition = definition
    this.args = args
    this.slots = keptSlots(slots)
    this.caller = caller
  }
}

/** A program, or a function in the coordinator. */
export interface Stoppable {
  stop(): void
  /** If it waits for its turn on a lane, it does not begin any more. */
  callBack?(): void
}

/** A job that has been started. */
export interface LiveJob {
  /** Its place in the ring of its thread; null when it went as a message or is a process. */
  position: number | null
  sent: boolean
  /** The thread that it was sent to. */
  thread: number
  /** It is sent when its turn on the lane has come. */
  held: boolean
  /** Counts what is sent: what went to a thread first is what it has begun with. */
  order: number
  /** Paths of its file slots; for written ones, where the attempt writes. */
  paths: (string | null)[] | null
  timer: NodeJS.Timeout | null
  process: Stoppable | null
  command: { words: readonly string[]; cwd: string } | null
  /** Of a command that has ended, where the system tells. */
  usage: TaskUsage | null
  /** What it called. */
  session: Session | null
  timedOut: boolean
  /** Values whose buffers it was lent. */
  lent: readonly Stored[]
  /** Values that its thread is to put into shared memory for others too. */
  published: readonly Stored[]
  /** It was given memory that exists only once, and cannot start again without it. */
  consumed: boolean
  /** Its thread is being stopped because of it. */
  guilty: boolean
  /** Its files are being prepared, or its end is being worked through: its state is looked at afterwards. */
  handling: boolean
  /** Copies of memory that it writes in place, to be put back when its thread ends under it. */
  backups: { target: Uint8Array; backup: Uint8Array }[] | null
  /** What this attempt has to know of values that are released early. */
  early: EarlyStart | null
}

const NONE: readonly Stored[] = []

export const jobOf = (task: Task): Job => task.payload as Job

/** Used again: short tasks would leave one each behind. */
const spare: LiveJob[] = []
const MOST_SPARE = 4096

export function liveOf(task: Task): LiveJob {
  const job = jobOf(task)
  return (job.live ??= spare.pop() ?? newLive())
}

/** The task has ended, or starts anew. What nothing but the way through a thread has touched is used again. */
export function endLive(job: Job): void {
  const { live } = job
  job.live = null
  if (!live || live.timer || live.paths || live.process || live.command || live.session) return
  if (live.handling || live.backups || live.early || spare.length >= MOST_SPARE) return
  live.position = null
  live.sent = live.held = live.timedOut = live.consumed = live.guilty = false
  live.lent = live.published = NONE
  spare.push(live)
}

function newLive(): LiveJob {
  return {
    position: null,
    sent: false,
    thread: -1,
    held: false,
    order: 0,
    paths: null,
    timer: null,
    process: null,
    command: null,
    usage: null,
    session: null,
    timedOut: false,
    lent: NONE,
    published: NONE,
    consumed: false,
    guilty: false,
    handling: false,
    backups: null,
    early: null,
  }
}
