import { Decoder } from '../../model/encoding/decode.ts'
import type { DecodeHooks } from '../../model/encoding/decode.ts'
import { WORD } from './early-wire.ts'

export interface RawAnswer {
  bytes: Uint8Array
  blobs: readonly ArrayBufferLike[]
}

export interface StreamPort {
  /** Asks for the next values; `isThere` says that some have arrived, so the task need not be blocked. */
  take(stream: number, isThere: boolean): Promise<RawAnswer>
  close(stream: number): void
  hooks: DecodeHooks
}

/** A stream that was passed to a task: its values, in order, with `for await`. */
export class TakenStream implements AsyncIterable<unknown>, AsyncIterator<unknown, undefined, void> {
  readonly #id: number
  readonly #words: Int32Array
  readonly #port: StreamPort
  /** What is here already, the next one last. */
  #here: unknown[] = []
  #taken = 0
  #isOver = false
  /** While values are on their way, further callers wait for the same answer. */
  #coming: Promise<void> | null = null

  constructor(id: number, memory: ArrayBufferLike, port: StreamPort) {
    this.#id = id
    this.#words = new Int32Array(memory)
    this.#port = port
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<unknown, undefined>> {
    while (this.#here.length === 0) {
      if (this.#isOver) return { done: true, value: undefined }
      await (this.#coming ??= this.#fetch().finally(() => (this.#coming = null)))
    }
    return { done: false, value: this.#here.pop() }
  }

  /** The loop was left: the rest is not needed. */
  // eslint-disable-next-line typescript/require-await
  async return(): Promise<IteratorResult<unknown, undefined>> {
    if (!this.#isOver) this.#port.close(this.#id)
    this.#isOver = true
    this.#here = []
    return { done: true, value: undefined }
  }

  async #fetch(): Promise<void> {
    const isThere = ((Atomics.load(this.#words, WORD.available) - this.#taken) | 0) > 0
    let answer: RawAnswer
    try {
      answer = await this.#port.take(this.#id, isThere)
      // It was announced, but is made by a called task that has not ended: then this one waits.
      if (isThere && isEmpty(answer)) answer = await this.#port.take(this.#id, false)
    } catch (error) {
      this.#isOver = true
      throw error
    }
    if (this.#isOver) return
    const decoder = new Decoder(answer.bytes, this.#port.hooks)
    const count = decoder.varint()
    this.#isOver = decoder.byte() === 1
    this.#taken += count
    const values: unknown[] = []
    for (let i = 0; i < count; i++) {
      decoder.beside(answer.blobs, decoder.varint())
      values.push(decoder.value())
    }
    this.#here = values.reverse()
  }
}

const isEmpty = ({ bytes }: RawAnswer): boolean => bytes[0] === 0 && bytes[1] === 0
