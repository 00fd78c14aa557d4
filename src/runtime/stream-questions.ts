import type { Datum } from '../core/data.ts'
import type { Task } from '../core/task.ts'
import type { Question } from '../execute/protocol.ts'
import { Encoder } from '../model/encode.ts'
import type { EncodeHooks } from '../model/encode.ts'
import { NOTHING, Stored } from '../model/stored.ts'
import type { Kept } from '../model/stored.ts'
import type { Channel, Item } from './channel.ts'
import { versionError } from './failure.ts'
import { jobOf, liveOf } from './job.ts'
import type { Runtime } from './runtime.ts'
import type { Session } from './session.ts'

type StreamQuestion = Extract<Question, { ask: 'room' | 'take' | 'next' }>

const primitives: EncodeHooks = {
  classes: null,
  blob: view => ({ buffer: view.buffer, offset: view.byteOffset }),
}

/** What running tasks ask about streams: room for their own values, and the values of others. */
export class StreamQuestions {
  readonly #runtime: Runtime
  /** What a taker was given and has not passed yet. */
  readonly #given = new WeakMap<Channel, Item[]>()

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  async answer(question: StreamQuestion, session: Session, task: Task): Promise<Kept> {
    switch (question.ask) {
      case 'room':
        await this.#hold(task, question)
        return NOTHING
      case 'take':
        return this.#take(question.stream, question.isThere)
      case 'next':
        return this.#next(session, question.stream, question.items)
    }
  }

  async #hold(task: Task, { items, bytes }: { items: number; bytes: number }): Promise<void> {
    const live = liveOf(task)
    const { limits } = this.#runtime.executor
    limits.pause(live)
    await this.#runtime.channels.madeBy(task)?.hold(items, bytes)
    if (jobOf(task).live === live) limits.goOn(live)
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

  /** Values for a task that was given the stream. Their buffers move there: nobody else takes them. */
  async #take(id: number, isThere: boolean): Promise<Kept> {
    const channel = this.#runtime.channels.passed(id)
    if (!channel) return encodeItems([], true)
    this.#pass(channel)
    if (isThere && !channel.hasNext) return encodeItems([], false)
    const first = await channel.next(false)
    if (!first) return encodeItems([], true)
    await this.#runtime.settled(first.version)
    if (first.version.state !== 'ready') throw versionError(first.version)
    const items = channel.more(first)
    this.#runtime.channels.tookFrom(channel)
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
