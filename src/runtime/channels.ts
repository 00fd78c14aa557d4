import type { Datum, Version } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import type { Task } from '../core/tasks/task.ts'
import type { Slot } from '../model/capture/call.ts'
import type { StreamRoom } from '../model/options/options.ts'
import { Encoder } from '../model/encoding/encode.ts'
import { Future } from '../model/future.ts'
import { Stored } from '../model/encoding/stored.ts'
import { TAG } from '../model/encoding/tags.ts'
import { Channel } from './channel.ts'
import type { ChannelHost, Item } from './channel.ts'
import { versionError } from './failure.ts'
import { jobOf } from '../node/job.ts'
import type { Runtime } from './runtime.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  | 'engine'
  | 'handle'
  | 'isAtRest'
  | 'isAwaited'
  | 'largeValues'
  | 'now'
  | 'schedule'
  | 'whenSettled'
  | 'whenUnread'
>

/** The streams of a run: who makes them, who takes them, and what happens when no task does. */
export class Channels implements ChannelHost {
  readonly #runtime: Uses
  readonly #byDatum = new WeakMap<Datum, Channel>()
  readonly #byTask = new WeakMap<Task, Channel>()
  /** Those that tasks take, by the number that they know them by. */
  readonly #passed = new Map<number, Channel>()
  /** Those whose producer has not ended. */
  readonly #alive = new Set<Channel>()
  #last = 0
  #isLooking = false
  #isProgramOver = false
  #warned = false

  constructor(runtime: Uses) {
    this.#runtime = runtime
  }

  /** Whether there is any stream in the run: most have none, and pay nothing. */
  get any(): boolean {
    return this.#last > 0
  }

  /** Someone waits for a value. */
  get isAwaited(): boolean {
    for (const channel of this.#alive) if (channel.isAwaited) return true
    return false
  }

  open(task: Task, stream: Version, end: Version, room: StreamRoom): void {
    const channel = new Channel(task, stream, end, room, this)
    const id = ++this.#last
    this.#byDatum.set(stream.datum, channel)
    this.#byTask.set(task, channel)
    this.#alive.add(channel)
    stream.value = handle(id, channel)
    ids.set(channel, id)
    this.settled(end, () => this.#alive.delete(channel))
  }

  of(datum: Datum): Channel | undefined {
    return this.#byDatum.get(datum)
  }

  madeBy(task: Task): Channel | undefined {
    return this.#byTask.get(task)
  }

  /** For what a task takes: null when it was dropped, because no task takes it any more. */
  passed(id: number): Channel | undefined {
    return this.#passed.get(id)
  }

  /** A task that was submitted may have been given streams: it takes their values until it ends. */
  submitted(task: Task, slots: readonly Slot[]): void {
    for (const { datum } of slots) {
      const channel = this.#byDatum.get(datum)
      if (!channel) continue
      channel.taker = task
      const id = ids.get(channel) as number
      this.#passed.set(id, channel)
      this.unread(channel.stream, () => {
        this.#passed.delete(id)
        channel.close()
      })
    }
  }

  /** A task that has taken values cannot begin again: they are gone. */
  tookFrom(channel: Channel): void {
    const { taker } = channel
    if (taker === null || taker === 'program') return
    this.#runtime.engine.lastAttempt(taker)
    const { attempt } = jobOf(taker)
    if (attempt) attempt.withMemory().consumed = true
  }

  /** The program's loop over a stream. */
  iterate(datum: Datum): AsyncIterator<Future<unknown>, undefined, void> {
    const channel = this.#byDatum.get(datum)
    if (!channel) throw new MillraceError('MR_INTERNAL', 'the stream belongs to no task of this run')
    channel.taker = 'program'
    let before: Item | null = null
    const done = { done: true as const, value: undefined }
    return {
      next: async () => {
        if (before) channel.pass(before)
        before = null
        const item = await channel.next(true)
        before = item
        return item ? { done: false as const, value: new Future(item.datum) } : done
      },
      return: () => {
        if (before) channel.pass(before)
        before = null
        channel.close()
        this.#runtime.schedule()
        return Promise.resolve(done)
      },
    }
  }

  /** The program will not take the values. */
  remove(datum: Datum): void {
    const channel = this.#byDatum.get(datum)
    if (channel?.taker === null) channel.close()
  }

  // --- what channels ask for ---

  release(task: Task, version: Version, at: number): void {
    const now = this.#runtime.now()
    this.#runtime.engine.release(task, version, Math.min(at, now), now)
    this.#runtime.largeValues.made(version)
    this.#runtime.schedule()
  }

  settled(version: Version, go: () => void): void {
    this.#runtime.whenSettled(version, go)
  }

  unread(version: Version, go: () => void): void {
    this.#runtime.whenUnread(version, go)
  }

  failureOf(end: Version, isTold: boolean): Error | null {
    if (end.state === 'ready' || end.state === 'pending') return null
    const error = versionError(end)
    if (isTold && end.cause) this.#runtime.handle(end.cause)
    return error
  }

  stop(task: Task): void {
    if (task.state === 'waiting' || task.state === 'ready' || task.state === 'parked') {
      this.#runtime.engine.cancelTask(task, null, { kind: 'unread' }, this.#runtime.now())
    }
    this.#runtime.schedule()
  }

  // --- when nothing goes on ---

  /**
   * Looks whether the run only waits for producers that are held. Then the program, or a task, waits for
   * something that comes when a producer has ended, and not for its values. Returns whether it may be so.
   */
  look(): boolean {
    if (this.#alive.size === 0 || !this.#runtime.isAtRest) return false
    let isHeld = false
    for (const channel of this.#alive) if (channel.isHeld) isHeld = true
    if (!isHeld) return false
    if (!this.#isLooking) {
      this.#isLooking = true
      // What is on its way by promises comes first.
      setImmediate(() => {
        this.#isLooking = false
        if (this.#runtime.isAtRest) this.#letOneGo()
      })
    }
    return true
  }

  #letOneGo(): void {
    let emptiest: Channel | null = null
    for (const channel of this.#alive) {
      if (channel.isHeld && (!emptiest || channel.waiting < emptiest.waiting)) emptiest = channel
    }
    if (!emptiest || !this.#runtime.isAwaited) return
    if (this.#isProgramOver && (emptiest.taker === null || emptiest.taker === 'program')) emptiest.close()
    else {
      this.#warn(emptiest)
      emptiest.makeRoom()
    }
    this.#runtime.schedule()
  }

  /** The program has ended: it takes nothing any more. */
  programEnded(): void {
    this.#isProgramOver = true
    for (const channel of this.#alive) if (channel.taker === null) channel.close()
    this.look()
  }

  /** A task ends that called generators: it takes nothing any more. */
  callerEnded(caller: Task): void {
    for (const channel of this.#alive) {
      if (channel.producer.parent === caller && (channel.taker === null || channel.taker === 'program'))
        channel.close()
    }
  }

  #warn({ producer }: Channel): void {
    if (this.#warned) return
    this.#warned = true
    this.#runtime.engine.observer?.({
      type: 'note',
      at: this.#runtime.now(),
      level: 'warning',
      text: `${producer.name} is held by a full buffer, and all else waits for it to end: its buffer grows. Take its values before waiting for other results of it.`,
    })
  }
}

const ids = new WeakMap<Channel, number>()

/** What a task is given for a stream: its number, and the memory that tells how many values are there. */
function handle(id: number, { memory }: Channel): Stored {
  const encoder = new Encoder()
  encoder.byte(TAG.stream)
  encoder.varint(id)
  encoder.varint(0)
  return new Stored(encoder.copy(), [memory])
}
