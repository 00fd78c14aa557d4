import type { Task } from '../../core/tasks/task.ts'
import type { ThreadEnd } from './guilty.ts'
import type { LaneThreadEvents, ThreadMessage } from './lane-thread.ts'
import { withRecord } from './protocol.ts'
import type { Decoder } from '../../model/encoding/decode.ts'
import type { Stored } from '../../model/encoding/stored.ts'
import type { TaskGrant } from './grants.ts'
import { EnvironmentWatch } from './environment-watch.ts'
import { IoPlaces, mayAbandon } from './io-places.ts'
import type { Attempt } from '../attempt.ts'
import { measuredBy } from '../steps.ts'
import type { StepTimes } from '../steps.ts'
import { attemptOf, jobOf } from '../job.ts'
import type { BufferOwnership } from './buffer-ownership.ts'
import { SentLists } from './sent-lists.ts'
import type { SentList } from './sent-lists.ts'
import { SentMemory } from './sent-memory.ts'
import { TaskWriter } from './task-writer.ts'
import type { RemoteTask, ThreadPort } from './thread-port.ts'

export interface ThreadsEvents {
  result(decoder: Decoder, end: number, blobs: readonly ArrayBufferLike[], lent: readonly ArrayBuffer[]): void
  message(message: ThreadMessage, lane: number): void
  findClass(module: string, name: string): Function | null
  /** The attempt ended with its thread; `guilty` when the thread died because of it. */
  lost(task: Task, guilty: boolean, reason: string): void
  /** There are results. */
  announced(): void
  /** A task with a timeout is with its thread, and the thread is ready to run it. */
  began(task: Task): void
  /** No other task can end the thread under it. */
  isAlone(task: Task): boolean
  /** It shares its CPU with a task that runs in the thread of that CPU. */
  isBeside(task: Task): boolean
  /** The CPUs and GPUs that it has; null for the many with one CPU. */
  grant(task: Task): TaskGrant | null
  /** Steps of attempts are measured. */
  readonly stepTimes: StepTimes
  /** See `RemoteTask`. */
  staysFrom(task: Task): number
  /** Other tasks in its thread could not begin again, were it stopped. */
  sparesOthers(task: Task): boolean
  /** The task could not be written. */
  refused(task: Task, error: unknown): void
  /** The thread has ended before its time. */
  died(end: ThreadEnd): void
}

/** Starts a thread: of this process, or on another machine. */
export type OpenThread = (lane: number, isIo: boolean, events: LaneThreadEvents) => ThreadPort

/**
 * What a task that is to stop gets to end by itself, or to wait for something; milliseconds. A new thread takes as long
 * to start and to be as fast as this one, and other tasks may be lost with it.
 */
const GRACE = { alone: 100, others: 3000 }

/** Extra threads for tasks that may end their thread while other tasks wait in it. */
const MOST_APART = 8

/** The last tasks of a group are urgent; this is their number. Each thread may have some. */
const LAST = 32

/** After this many threads in a row that end before they are ready, no more are started. */
const STILLBORN = 3

/** The compute threads of this machine, one per lane. */
export class Threads {
  readonly #threads: (ThreadPort | null)[] = []
  /** Kinds that each thread knows by number. */
  readonly #known: Set<number>[] = []
  readonly #environment = new EnvironmentWatch()
  /** The version of the environment that each thread has. */
  readonly #told: number[] = []
  readonly #writer: TaskWriter
  readonly #buffers: BufferOwnership
  readonly #events: ThreadsEvents
  readonly #open: OpenThread
  readonly #places: IoPlaces
  readonly #lanes: number
  /** The task on each extra thread. */
  readonly #apart = new Map<number, Task>()
  readonly #memory = new SentMemory((lane, number) =>
    this.#threads[lane]?.send({ type: 'forget-memory', number }),
  )
  readonly #lists = new SentLists((lane, number) =>
    this.#threads[lane]?.sendCounted({ type: 'forget-list', number }),
  )
  #ending = false
  #sent = 0
  #stillborn = 0

  /** `lanes`: how many compute threads there are; threads apart, and then those for I/O, are numbered after them. */
  constructor(lanes: number, buffers: BufferOwnership, open: OpenThread, events: ThreadsEvents) {
    this.#lanes = lanes
    this.#places = new IoPlaces(lanes + MOST_APART)
    this.#buffers = buffers
    this.#writer = new TaskWriter(
      buffers,
      this.#lists,
      task => events.isAlone(task),
      task => events.grant(task),
      measuredBy(events.stepTimes),
    )
    this.#open = open
    this.#events = events
  }

  /**
   * Starts a thread ahead of the first task, so that it loads while the program goes on, and then those for I/O tasks
   * if there will be any; others follow need.
   */
  warmUp(): void {
    this.#thread(0).whenReady(() => {
      if (!this.#ending) for (const thread of this.#places.ahead()) this.#thread(thread)
    })
  }

  /** Whether the task has to wait for its turn on the lane before it is sent: `head` may not be in the thread of the lane. */
  mustWait(task: Task, head: Task | undefined): boolean {
    const isHere = this.#threads[task.lane]?.sendTask == null
    return (isHere && this.#writer.hasOwnMemory(task)) || (this.#apart.size > 0 && this.#isApart(head))
  }

  #isApart(task: Task | undefined): boolean {
    return task !== undefined && this.#apart.get(jobOf(task).attempt?.thread ?? -1) === task
  }

  send(task: Task): void {
    const missing = this.#writer.missing(task)
    if (missing) return this.#sendWhenBack(task, missing)
    const lane = task.demand.io ? this.#places.place(task) : this.#laneOf(task)
    const thread = this.#thread(lane)
    const attempt = attemptOf(task)
    attempt.thread = lane
    this.#nameKind(task, lane, thread)
    if (this.#told[lane] !== this.#environment.version) this.#tellEnvironment(lane, thread)
    try {
      const isRemote = thread.sendTask !== null
      this.#writer.write(task, thread.messages, isRemote, isRemote || task.demand.io ? -1 : lane)
    } catch (error) {
      return this.#events.refused(task, error)
    }
    attempt.move('sent', task)
    attempt.order = ++this.#sent
    if (thread.sendTask) return this.#sendAway(task, attempt, thread, thread.sendTask)
    const { encoder, transfer } = this.#writer
    if (attempt.memory || this.#writer.hasObligations) this.#noteMemory(attempt)
    if (this.#writer.sentLists) this.#noteLists(attempt)
    const isListed = this.#writer.listMemory(this.#memory, lane)
    const { message } = this.#writer
    attempt.position =
      isListed && encoder.length <= thread.largest ? thread.sendRecord(encoder.bytes, encoder.length) : null
    if (isAwaited(task)) thread.hurry(attempt.position === null)
    // The record waits for it; a thread that sleeps is woken by it and finds both.
    if (message) thread.sendCounted(message)
    if (task.timed || task.demand.io || !thread.isReady) this.#tellWhenReady(task, thread)
    if (attempt.position !== null) return
    const blobs = isListed ? [] : encoder.blobs
    const bytes = encoder.copy()
    thread.sendCounted({ type: 'task', bytes, blobs }, withRecord(bytes, transfer))
  }

  #sendAway(task: Task, attempt: Attempt, thread: ThreadPort, send: (task: RemoteTask) => number): void {
    const { encoder, placed } = this.#writer
    const keepsFailed = task.attempt > task.retries
    const { bytes: record, length, blobs } = encoder
    const staysFrom = this.#events.staysFrom(task)
    attempt.position = send({
      id: task.id,
      record,
      length,
      blobs: [...blobs],
      placed,
      keepsFailed,
      staysFrom,
    })
    if (isAwaited(task)) thread.hurry()
    if (task.timed || task.demand.io || !thread.isReady) this.#tellWhenReady(task, thread)
  }

  /**
   * A task that is likely to end its thread does not run on a thread where other tasks wait: its caller is among
   * them, and would begin again, call it again, and never end.
   * A task that shares the CPU of another one gets a thread of its own, too.
   */
  #laneOf(task: Task): number {
    const isBeside = task.demand.cpus !== 1 && this.#events.isBeside(task)
    if (!isBeside && !task.timed && !task.kind.endsThreads) return task.lane
    if (!isBeside && this.#events.isAlone(task)) return task.lane
    for (let thread = this.#lanes; thread < this.#lanes + MOST_APART; thread++) {
      if (this.#apart.has(thread)) continue
      this.#apart.set(thread, task)
      return thread
    }
    return task.lane
  }

  #tellEnvironment(lane: number, thread: ThreadPort): void {
    this.#told[lane] = this.#environment.version
    thread.sendCounted({ type: 'environment', changes: this.#environment.changes() })
  }

  #nameKind(task: Task, lane: number, thread: ThreadPort): void {
    const known = this.#known[lane] as Set<number>
    const number = task.kind.id
    if (known.has(number)) return
    known.add(number)
    const { key, module } = jobOf(task).definition
    thread.sendCounted({ type: 'kind', number, key, module })
  }

  /** Answers a question of a running task; the buffers of the answer are moved there, or copied. */
  answer(lane: number, request: number, ok: boolean, { bytes, blobs }: Stored, isMoved = false): void {
    const moved = isMoved ? blobs.filter((blob): blob is ArrayBuffer => blob instanceof ArrayBuffer) : []
    this.#threads[lane]?.send({ type: 'answer', request, ok, bytes, blobs }, moved)
  }

  /** Whether what is sent to the lane begins at once. */
  isReady(lane: number): boolean {
    return this.#threads[lane]?.isReady ?? false
  }

  /** Someone waits for it. Returns whether results of its thread are there to be taken. */
  hurry(task: Task): boolean {
    const { attempt } = jobOf(task)
    if (!attempt || attempt.thread < 0) return false
    return this.#threads[attempt.thread]?.hurry(attempt.position === null) ?? false
  }

  /** Some CPU has nothing to do: each result may be what it waits for. Returns whether some are there to be taken. */
  hurryAll(): boolean {
    let isAny = false
    for (const thread of this.#threads) if (thread?.hurry()) isAny = true
    return isAny
  }

  /** Wakes the threads for what was sent to them. */
  announce(): void {
    for (const thread of this.#threads) thread?.announce()
  }

  /** Takes results that are there already. */
  drain(looksAgain = false): void {
    for (const thread of this.#threads) thread?.drain(looksAgain)
  }

  /** Whether the thread has taken the task out of its ring. */
  hasBegun(task: Task): boolean {
    const { attempt } = jobOf(task)
    if (!attempt?.isSent || attempt.position === null) return false
    return this.#threads[attempt.thread]?.isTaken(attempt.position) ?? false
  }

  /**
   * Stops the thread in which the task runs. What else was on it is lost without fault. A task that is cancelled
   * while it waits needs nothing of that: it never gets its answer.
   */
  stop(task: Task, reason: string, isWaiting = false): void {
    const attempt = attemptOf(task)
    if (!attempt.isSent || this.revoke(task)) return this.#events.lost(task, true, reason)
    const isAsked =
      !isWaiting &&
      task.startedAt < 0 &&
      this.askBack(task, isBack => {
        if (isBack) this.#events.lost(task, true, reason)
        else this.#stopBegun(task, reason, isWaiting)
      })
    if (!isAsked) this.#stopBegun(task, reason, isWaiting)
  }

  /**
   * On another machine it is not known here whether a task has begun: it is asked for, and the answer comes later. Returns
   * false for threads of this process.
   */
  askBack(task: Task, answer: (isBack: boolean) => void): boolean {
    const attempt = attemptOf(task)
    const { position } = attempt
    const thread = this.#threads[attempt.thread]
    if (!thread?.askBack || position === null) return false
    thread.askBack(position, isBack => {
      if (jobOf(task).attempt === attempt && attempt.isSent) answer(isBack)
    })
    return true
  }

  #stopBegun(task: Task, reason: string, isWaiting: boolean): void {
    const attempt = attemptOf(task)
    if (task.demand.io && mayAbandon(task)) return this.#abandon(task, attempt.thread, reason)
    if (attempt.state === 'killed') return
    if (isWaiting && attempt.owesNothing) {
      this.#threads[attempt.thread]?.send({ type: 'abandon', task: task.id })
      return this.#events.lost(task, true, reason)
    }
    const thread = this.#threads[attempt.thread]
    const kill = (): void => {
      // It may have ended by itself meanwhile.
      if (jobOf(task).attempt !== attempt || attempt.state !== 'sent') return
      attempt.move('killed', task)
      thread?.kill(reason)
    }
    if (this.#events.sparesOthers(task)) setTimeout(kill, GRACE.others).unref()
    else if (task.state === 'stopping') setTimeout(kill, GRACE.alone).unref()
    else kill()
  }

  /** The attempt has ended well: its thread has the lists that went with it. */
  hasRead(lists: readonly SentList[]): void {
    this.#lists.arrived(lists)
  }

  /** The task is not with its thread any more. */
  left(task: Task): void {
    const { thread, lists } = attemptOf(task)
    if (lists) this.#lists.left(lists, thread)
    if (this.#apart.get(thread) === task) this.#apart.delete(thread)
    if (!task.demand.io) return
    if (thread >= 0 && this.#places.leave(task, thread)) this.#threads[thread]?.kill('its last task ended')
  }

  /** A task held its I/O thread for this long. If its kind does so, tasks that have not begun move to other threads. */
  blocked(task: Task, milliseconds: number): void {
    this.#placeAgain(this.#places.blocked(task, milliseconds))
  }

  /**
   * Tasks that wait behind one that holds its thread get another thread. Called continually while tasks run.
   * Returns whether it is to be called again soon.
   */
  freeHeld(): boolean {
    if (!this.#places.hasTrials) return false
    this.#placeAgain(this.#places.held(thread => this.isReady(thread)))
    return true
  }

  /** Tasks that have not begun move to other threads: the task before them blocks, and they may block too. */
  #placeAgain(tasks: readonly Task[]): void {
    for (const task of tasks) {
      const { thread } = attemptOf(task)
      if (!this.revoke(task)) continue
      this.#places.blocks(task.kind)
      this.#places.leave(task, thread)
      this.send(task)
    }
    if (tasks.length > 0) this.announce()
  }

  #abandon(task: Task, thread: number, reason: string): void {
    this.#places.abandon(task, thread)
    this.#events.lost(task, true, reason)
    if (this.#places.isDone(thread)) this.#threads[thread]?.kill(reason)
    else this.#threads[thread]?.checkAlive(() => this.#threads[thread]?.kill(reason))
  }

  async end(): Promise<void> {
    this.#ending = true
    this.#environment.end()
    await Promise.all(this.#threads.map(async thread => thread?.end()))
  }

  // Functions of their own, as `accessAll` in core/engine.ts.

  #tellWhenReady(task: Task, thread: ThreadPort): void {
    thread.whenReady(() => this.#events.began(task))
  }

  #noteMemory(attempt: Attempt): void {
    const { lent, published, consumed } = this.#writer
    Object.assign(attempt.withMemory(), { lent, published, consumed })
  }

  #noteLists(attempt: Attempt): void {
    attempt.lists = this.#writer.sentLists
    this.#lists.sent(attempt.lists ?? [])
  }

  #sendWhenBack(task: Task, missing: Stored): void {
    const attempt = attemptOf(task)
    if (attempt.state !== 'waiting') attempt.move('waiting', task)
    this.#buffers.whenBack(missing, () => {
      if (task.state !== 'running') return
      this.send(task)
      this.announce()
    })
  }

  /** Whether the thread has not begun with it, and never will. */
  revoke(task: Task): boolean {
    const { position, thread } = attemptOf(task)
    if (position === null || !this.#threads[thread]?.revoke(position)) return false
    for (const buffer of this.#writer.sharedMemory(task)) this.#memory.takenBack(buffer, thread)
    return true
  }

  #thread(lane: number): ThreadPort {
    const existing = this.#threads[lane]
    if (existing) return existing
    this.#known[lane] = new Set()
    this.#told[lane] = this.#environment.version
    this.#memory.reset(lane)
    this.#lists.reset(lane)
    const io = this.#places.owns(lane)
    const thread = this.#open(lane, io, {
      result: (decoder, end, blobs, lent) => {
        if (!io || !this.#isStale(decoder, lane)) this.#events.result(decoder, end, blobs, lent)
      },
      message: message => this.#events.message(message, lane),
      findClass: (module, name) => this.#events.findClass(module, name),
      announced: () => this.#events.announced(),
      ended: reason => this.#ended(lane, thread, reason),
    })
    this.#threads[lane] = thread
    thread.whenReady(() => (this.#stillborn = 0))
    return thread
  }

  #ended(lane: number, thread: ThreadPort, reason: string): void {
    if (this.#threads[lane] === thread) this.#threads[lane] = null
    const isExpected = this.#places.isDone(lane)
    if (this.#places.owns(lane)) this.#places.ended(lane)
    if (this.#ending || isExpected) return
    if (thread.isStillborn) this.#stillborn++
    const isHopeless = this.#stillborn >= STILLBORN
    this.#events.died({
      thread: lane,
      reason,
      taken: position => (thread.askBack ? thread.isTaken(position) : !thread.revoke(position)),
      last: thread.began,
      isHopeless,
      isKilled: thread.isKilled,
      isCutOff: thread.isCutOff,
    })
  }

  /** The result of an attempt that was given up; the next one may be running in another thread. */
  #isStale(decoder: Decoder, lane: number): boolean {
    const { at } = decoder
    const id = decoder.varint()
    decoder.at = at
    return this.#places.isAbandoned(id, lane)
  }
}

/** By the program, or by a task that needs no CPU; or it is among the last of a group that the program waits for. */
function isAwaited({ accesses, group }: Task): boolean {
  if (group.watched && group.parent && group.live <= LAST) return true
  for (const { write } of accesses) {
    if (write && (write.watched || write.waiters?.some(waiter => waiter.demand.io))) return true
  }
  return false
}
