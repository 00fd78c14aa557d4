import type { Datum } from '../core/data/datum.ts'
import type { Task } from '../core/tasks/task.ts'
import type { Question } from '../node/threads/protocol.ts'
import { Encoder } from '../model/encoding/encode.ts'
import type { EncodeHooks } from '../model/encoding/encode.ts'
import { NOTHING, Stored } from '../model/encoding/stored.ts'
import type { Kept } from '../model/encoding/stored.ts'
import type { Channel, Item } from './channel.ts'
import { versionError } from './failure.ts'
import { attemptOf, jobOf } from '../node/job.ts'
import { pauseTimeout, resumeTimeout } from '../node/timeouts.ts'
import type { Runtime } from './runtime.ts'
import type { Session } from './session.ts'

/** What it uses of the runtime. */
type Uses = Pick<Runtime, 'hasAgents' | 'channels' | 'schedule' | 'settled'>

type StreamQuestion = Extract<Question, { ask: 'room' | 'take' | 'next' }>

const primitives: EncodeHooks = {
  classes: null,
  blob: view => ({ buffer: view.buffer, offset: view.byteOffset }),
}

/** What a task on another machine took of a stream, so that it can begin again should its node be lost. */
interface Replay {
  /** Of the attempt that takes now. */
  session: Session | null
  /** What that attempt gets next. */
  next: number
  readonly answers: Stored[]
  bytes: number
  /** Values are on their way; an attempt that was lost may have asked for them. */
  coming: Promise<void> | null
}

/** Bytes of one stream that are kept for that. A task that has taken more cannot begin again. */
const MOST_KEPT = 64 * 2 ** 20

/** What running tasks ask about streams: room for their own values, and the values of others. */
export class StreamQuestions {
  readonly #runtime: Uses
  /** What a taker was given and has not passed yet. */
  readonly #given = new WeakMap<Channel, Item[]>()
  readonly #replays = new WeakMap<Channel, Replay>()

  constructor(runtime: Uses) {
    this.#runtime = runtime
  }

  async answer(question: StreamQuestion, session: Session, task: Task): Promise<Kept> {
    switch (question.ask) {
      case 'room':
        await this.#hold(task, question)
        return NOTHING
      case 'take':
        return this.#take(question.stream, question.isThere, session)
      case 'next':
        return this.#next(session, question.stream, question.items)
    }
  }

  async #hold(task: Task, { items, bytes }: { items: number; bytes: number }): Promise<void> {
    const attempt = attemptOf(task)
    pauseTimeout(attempt)
    await this.#runtime.channels.madeBy(task)?.hold(items, bytes)
    if (jobOf(task).attempt === attempt) resumeTimeout(attempt)
  }

  /** A loop in a task was left. */
  close(session: Session, { stream, isPassed }: { stream: number; isPassed: boolean }): void {
    const datum = isPassed ? undefined : session.data?.get(stream)
    const channel = isPassed
      ? this.#runtime.channels.passed(stream)
      : datum && this.#runtime.channels.of(datum)
    if (!channel) return
    this.#pass(channel)
    channel.close()
    this.#runtime.schedule()
  }

  /** Values for a task that was given the stream. Their buffers move there: no other task takes them. */
  async #take(id: number, isThere: boolean, session: Session): Promise<Kept> {
    const channel = this.#runtime.channels.passed(id)
    if (!channel) return encodeItems([], true)
    if (!this.#runtime.hasAgents) return this.#takeNext(channel, isThere)
    let replay = this.#replays.get(channel)
    if (!replay) {
      replay = { session, next: 0, answers: [], bytes: 0, coming: null }
      this.#replays.set(channel, replay)
    }
    return this.#takeAgain(channel, replay, isThere, session)
  }

  /** Gives an attempt first what earlier ones took. */
  async #takeAgain(channel: Channel, replay: Replay, isThere: boolean, session: Session): Promise<Kept> {
    if (replay.session !== session) Object.assign(replay, { session, next: 0 })
    while (replay.next === replay.answers.length) {
      if (isThere && (replay.coming || !channel.hasNext)) return encodeItems([], false)
      replay.coming ??= this.#takeNext(channel, false)
        .then(answer => this.#keep(channel, replay, answer))
        .finally(() => (replay.coming = null))
      await replay.coming
      // Another attempt has begun meanwhile: this answer goes nowhere.
      if (replay.session !== session) return encodeItems([], true)
    }
    return replay.answers[replay.next++] as Stored
  }

  #keep(channel: Channel, replay: Replay, answer: Stored): void {
    replay.answers.push(answer)
    replay.bytes += answer.bytes.length
    for (const { byteLength } of answer.blobs) replay.bytes += byteLength
    if (replay.bytes <= MOST_KEPT) return
    this.#runtime.channels.tookFrom(channel)
    // The last one is on its way to the task.
    for (let i = 0; i < replay.answers.length - 1; i++) replay.answers[i] = EMPTY
  }

  async #takeNext(channel: Channel, isThere: boolean): Promise<Stored> {
    this.#pass(channel)
    if (isThere && !channel.hasNext) return encodeItems([], false)
    const first = await channel.next(false)
    if (!first) return encodeItems([], true)
    await this.#runtime.settled(first.version)
    if (first.version.state !== 'ready') throw versionError(first.version)
    const items = channel.more(first)
    if (!this.#runtime.hasAgents) this.#runtime.channels.tookFrom(channel)
    this.#given.set(channel, items)
    return encodeItems(items, false)
  }

  /** Futures for a task that called the generator itself. Returns for how many of the numbers there is one. */
  async #next(session: Session, stream: number, ids: readonly number[]): Promise<Kept> {
    if (session.refused.has(stream)) {
      const error = session.refused.get(stream)
      session.refused.delete(stream)
      throw error
    }
    const channel = this.#runtime.channels.of(session.data?.get(stream) as Datum)
    if (!channel) return 0
    channel.taker ??= 'program'
    this.#pass(channel)
    const first = await channel.next(true)
    if (!first) return 0
    const items = channel.more(first, ids.length)
    this.#given.set(channel, items)
    items.forEach((item, i) => session.data?.set(ids[i] as number, item.datum))
    return items.length
  }

  #pass(channel: Channel): void {
    for (const item of this.#given.get(channel) ?? []) channel.pass(item)
    this.#given.delete(channel)
  }
}

const EMPTY = new Stored(new Uint8Array(), [])

/** The number of values, whether there are no more, and the values, each behind the index of its first buffer. */
function encodeItems(items: readonly Item[], isOver: boolean): Stored {
  const encoder = new Encoder()
  const blobs: ArrayBufferLike[] = []
  encoder.varint(items.length)
  encoder.byte(isOver ? 1 : 0)
  for (const { version } of items) {
    const kept = version.value as Kept
    encoder.varint(blobs.length)
    if (kept instanceof Stored) {
      encoder.raw(kept.bytes)
      blobs.push(...kept.blobs)
    } else encoder.value(kept === NOTHING ? undefined : kept, primitives)
    version.value = undefined
  }
  return new Stored(encoder.copy(), blobs)
}
