import type { Engine } from '../core/engine.ts'
import { WAITED_IN_VAIN } from '../core/events.ts'
import type { Task } from '../core/task.ts'
import { LaneThread } from '../execute/lane-thread.ts'
import type { LaneThreadOptions, ThreadMessage } from '../execute/lane-thread.ts'
import { withRecord } from '../execute/protocol.ts'
import type { Decoder } from '../model/decode.ts'
import type { Stored } from '../model/stored.ts'
import { EnvironmentWatch } from './environment-watch.ts'
import { IoPlaces, mayAbandon, owesNothing } from './io-places.ts'
import { jobOf, liveOf } from './job.ts'
import type { Loans } from './loans.ts'
import { SentMemory } from './sent-memory.ts'
import { TaskWriter } from './task-writer.ts'

export interface ThreadsEvents {
  result(decoder: Decoder, end: number, blobs: readonly ArrayBufferLike[], lent: readonly ArrayBuffer[]): void
  message(message: ThreadMessage, lane: number): void
  findClass(module: string, name: string): Function | null
  /** The attempt ended with its thread; `guilty` when the thread died because of it. */
  lost(task: Task, guilty: boolean, reason: string): void
  /** It was taken back from its thread before it began. */
  gaveBack(task: Task, reason: string): void
  /** There are results. */
  announced(): void
  /** A task with a timeout is with its thread, and the thread is ready to run it. */
  began(task: Task): void
  /** No other task can end the thread under it. */
  isAlone(task: Task): boolean
  /** Other tasks in its thread could not begin again, were it stopped. */
  sparesOthers(task: Task): boolean
  /** The task could not be written. */
  refused(task: Task, error: unknown): void
  /**
   * `taken` tells whether the thread had begun with what was at a position of its ring; `last` is the task that began last,
   * where one runs at a time. `isHopeless`: threads end before they begin with anything, one after the other.
   */
  died(
    lane: number,
    reason: string,
    taken: (position: number) => boolean,
    last: number,
    isHopeless: boolean,
  ): void
}

/**
 * What a task that is to stop gets to end by itself, or to wait for something; milliseconds. A new thread takes as long
 * to start and to be as fast as this one, and other tasks may be lost with it.
 */
const GRACE = { alone: 100, others: 3000 }

/** A lane that has not answered for this long, with tasks waiting behind, is asked for them back; milliseconds. */
const STUCK = 10

/** Threads for tasks that may end theirs, while others wait in the one that they would have been given. */
const MOST_APART = 8

/** So many tasks of a group are its last: some may be on each thread. */
const LAST = 32

/** So many threads in turn that end before they are ready, and no more are tried. */
const STILLBORN = 3

/** The compute threads of this machine, one per lane. */
export class Threads {
  /** Taken back since the last look: not again so soon. */
  readonly #moved = new Set<Task>()
  readonly #threads: (LaneThread | null)[] = []
  /** Kinds that each thread knows by number. */
  readonly #known: Set<number>[] = []
  readonly #heard: number[] = []
  readonly #endedAt: number[] = []
  readonly #environment = new EnvironmentWatch()
  /** The version of the environment that each thread has. */
  readonly #told: number[] = []
  readonly #writer: TaskWriter
  readonly #loans: Loans
  readonly #events: ThreadsEvents
  readonly #options: () => Omit<LaneThreadOptions, 'lane' | 'io'>
  readonly #places: IoPlaces
  readonly #lanes: number
  /** Who is on which thread apart. */
  readonly #apart = new Map<number, Task>()
  readonly #memory = new SentMemory((lane, number) =>
    this.#threads[lane]?.send({ type: 'forget-memory', number }),
  )
  #ending = false
  #sent = 0
  #stillborn = 0

  /** `lanes`: how many compute threads there are; threads apart, and then those for I/O, are numbered after them. */
  constructor(
    lanes: number,
    loans: Loans,
    options: () => Omit<LaneThreadOptions, 'lane' | 'io'>,
    events: ThreadsEvents,
  ) {
    this.#lanes = lanes
    this.#places = new IoPlaces(lanes + MOST_APART)
    this.#loans = loans
    this.#writer = new TaskWriter(loans, task => events.isAlone(task))
    this.#options = options
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
    return this.#writer.hasOwnMemory(task) || (this.#apart.size > 0 && this.#isApart(head))
  }

  #isApart(task: Task | undefined): boolean {
    return task !== undefined && this.#apart.get(jobOf(task).live?.thread ?? -1) === task
  }

  send(task: Task): void {
    const missing = this.#writer.missing(task)
    if (missing) return this.#sendWhenBack(task, missing)
    const lane = task.demand.io ? this.#places.place(task) : this.#laneOf(task)
    const thread = this.#thread(lane)
    const live = liveOf(task)
    live.thread = lane
    this.#nameKind(task, lane, thread)
    if (this.#told[lane] !== this.#environment.version) this.#tellEnvironment(lane, thread)
    try {
      this.#writer.write(task, thread.messages)
    } catch (error) {
      return this.#events.refused(task, error)
    }
    live.sent = true
    live.order = ++this.#sent
    const { encoder, transfer, lent, published, consumed } = this.#writer
    live.lent = lent
    live.published = published
    live.consumed = consumed
    const isListed = this.#writer.listMemory(this.#memory, lane)
    const { message } = this.#writer
    live.position =
      isListed && encoder.length <= thread.largest ? thread.sendRecord(encoder.bytes, encoder.length) : null
    if (isAwaited(task)) thread.hurry(live.position === null)
    // The record waits for it; a thread that sleeps is woken by it and finds both.
    if (message) thread.sendCounted(message)
    if (task.timed || task.demand.io || !thread.isReady) this.#tellWhenReady(task, thread)
    if (live.position !== null) return
    const blobs = isListed ? [] : encoder.blobs
    const bytes = encoder.copy()
    thread.sendCounted({ type: 'task', bytes, blobs }, withRecord(bytes, transfer))
  }

  /**
   * A task that is likely to end its thread gets one apart from those that wait in its own: whoever called it is
   * among them, and would begin again, call it again, and never end.
   */
  #laneOf(task: Task): number {
    if (!task.timed && !task.kind.endsThreads) return task.lane
    if (this.#events.isAlone(task)) return task.lane
    for (let thread = this.#lanes; thread < this.#lanes + MOST_APART; thread++) {
      if (this.#apart.has(thread)) continue
      this.#apart.set(thread, task)
      return thread
    }
    return task.lane
  }

  #tellEnvironment(lane: number, thread: LaneThread): void {
    this.#told[lane] = this.#environment.version
    thread.sendCounted({ type: 'environment', changes: this.#environment.changes() })
  }

  #nameKind(task: Task, lane: number, thread: LaneThread): void {
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
    const live = jobOf(task).live
    if (!live || live.thread < 0) return false
    return this.#threads[live.thread]?.hurry(live.position === null) ?? false
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

  /** There is a result of a task that ended at this time. */
  heard(lane: number, now: number, endedAt: number): void {
    this.#heard[lane] = now
    this.#endedAt[lane] = endedAt
  }

  /**
   * A task that queued on its lane tells with its result when it began. One that takes long is told of before: it has
   * been taken, and began when the one before it ended.
   */
  tellBegun(engine: Engine, now: number): void {
    this.#moved.clear()
    for (const { index, queue } of engine.nodes[0]?.lanes ?? []) {
      const head = queue.peek()
      if (!head || head.startedAt >= 0 || head.kind.form !== 'function') continue
      if (now - (this.#heard[index] ?? 0) < STUCK) continue
      const { live } = jobOf(head)
      if (!live?.sent || live.position === null || !this.#threads[live.thread]?.isTaken(live.position))
        continue
      engine.started(head, Math.max(this.#endedAt[index] ?? now, head.begunAt))
    }
  }

  /**
   * Short tasks queue on a lane; when one of them turns out to be long, those behind it go back to be
   * started elsewhere.
   */
  takeBack(engine: Engine, now: number): void {
    const node = engine.nodes[0]
    if (!node || node.freeLanes === 0) return
    for (const lane of node.lanes) {
      const head = lane.queue.peek()
      if (lane.queue.size < 2 || head?.kind.form !== 'function') continue
      if (now - (this.#heard[lane.index] ?? 0) < STUCK) continue
      lane.long = head
      for (const task of [...lane.queue].slice(1)) this.#giveBack(task, WAITED_IN_VAIN)
    }
  }

  /** Those that wait where they should not, and have not begun, are placed anew. Returns whether there are any. */
  move(tasks: readonly Task[], reason: string): boolean {
    let isAny = false
    for (const task of tasks) {
      // What was made ready for one with files is made for this attempt: it is not begun anew for a few milliseconds.
      if (task.state !== 'running' || jobOf(task).live?.paths || this.#moved.has(task)) continue
      if (!this.#giveBack(task, reason)) continue
      this.#moved.add(task)
      isAny = true
    }
    return isAny
  }

  /**
   * Stops the thread in which the task runs. What else was on it is lost without fault. A task that is cancelled
   * while it waits needs nothing of that: it never gets its answer.
   */
  stop(task: Task, reason: string, isWaiting = false): void {
    const live = liveOf(task)
    if (!live.sent) return this.#events.lost(task, true, reason)
    if (this.#revoke(task, live.thread)) {
      return this.#events.lost(task, true, reason)
    }
    if (task.demand.io && mayAbandon(task)) return this.#abandon(task, live.thread, reason)
    if (live.guilty) return
    if (isWaiting && owesNothing(task)) {
      this.#threads[live.thread]?.send({ type: 'abandon', task: task.id })
      return this.#events.lost(task, true, reason)
    }
    const { attempt } = task
    const thread = this.#threads[live.thread]
    const kill = (): void => {
      if (task.ended || task.attempt !== attempt) return
      live.guilty = true
      thread?.kill(reason)
    }
    if (this.#events.sparesOthers(task)) setTimeout(kill, GRACE.others).unref()
    else if (task.state === 'stopping') setTimeout(kill, GRACE.alone).unref()
    else kill()
  }

  /** The task is not with its thread any more. */
  left(task: Task): void {
    const { thread } = liveOf(task)
    if (this.#apart.get(thread) === task) this.#apart.delete(thread)
    if (!task.demand.io) return
    if (thread >= 0 && this.#places.leave(task, thread)) this.#threads[thread]?.kill('its last task ended')
  }

  /** A task of an I/O thread kept it from the others for so long: if its kind does, those that have not begun go elsewhere. */
  blocked(task: Task, milliseconds: number): void {
    this.#placeAgain(this.#places.blocked(task, milliseconds))
  }

  /**
   * Those that wait behind a task whose thread does not come back get another; called all the time while tasks run.
   * Returns whether it is to be called again soon.
   */
  freeHeld(): boolean {
    if (!this.#places.hasTrials) return false
    this.#placeAgain(this.#places.held(thread => this.isReady(thread)))
    return true
  }

  /** Those that have not begun go elsewhere: whoever is before them blocks, and so will they. */
  #placeAgain(tasks: readonly Task[]): void {
    for (const task of tasks) {
      const { thread } = liveOf(task)
      if (!this.#revoke(task, thread)) continue
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

  #tellWhenReady(task: Task, thread: LaneThread): void {
    thread.whenReady(() => this.#events.began(task))
  }

  #sendWhenBack(task: Task, missing: Stored): void {
    this.#loans.whenBack(missing, () => {
      if (task.state !== 'running') return
      this.send(task)
      this.announce()
    })
  }

  /** Whether the thread has not begun with it, and never will. */
  #revoke(task: Task, lane: number): boolean {
    const { position } = liveOf(task)
    if (position === null || !this.#threads[lane]?.revoke(position)) return false
    for (const buffer of this.#writer.sharedMemory(task)) this.#memory.takenBack(buffer, lane)
    return true
  }

  #giveBack(task: Task, reason: string): boolean {
    if (!liveOf(task).held && !this.#revoke(task, liveOf(task).thread)) return false
    this.#events.gaveBack(task, reason)
    return true
  }

  #thread(lane: number): LaneThread {
    const existing = this.#threads[lane]
    if (existing) return existing
    this.#known[lane] = new Set()
    this.#told[lane] = this.#environment.version
    this.#memory.reset(lane)
    const io = this.#places.owns(lane)
    const thread = new LaneThread(
      { ...this.#options(), lane, io },
      {
        result: (decoder, end, blobs, lent) => {
          if (!io || !this.#isStale(decoder, lane)) this.#events.result(decoder, end, blobs, lent)
        },
        message: message => this.#events.message(message, lane),
        findClass: (module, name) => this.#events.findClass(module, name),
        announced: () => this.#events.announced(),
        ended: reason => this.#ended(lane, thread, reason),
      },
    )
    this.#threads[lane] = thread
    thread.whenReady(() => (this.#stillborn = 0))
    return thread
  }

  #ended(lane: number, thread: LaneThread, reason: string): void {
    if (this.#threads[lane] === thread) this.#threads[lane] = null
    const isExpected = this.#places.isDone(lane)
    if (this.#places.owns(lane)) this.#places.ended(lane)
    if (this.#ending || isExpected) return
    if (thread.isStillborn) this.#stillborn++
    const isHopeless = this.#stillborn >= STILLBORN
    this.#events.died(lane, reason, position => !thread.revoke(position), thread.began, isHopeless)
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
