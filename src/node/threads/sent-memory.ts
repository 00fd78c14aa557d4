import { SharedGarbage } from './shared-garbage.ts'
import type { Encoder } from '../../model/encoding/encode.ts'

interface Numbered {
  number: number
  /** It was sent before: who sends it again will do so more often. */
  isKept: boolean
}

/** What goes to a thread before a record that refers to it. */
export interface MemoryMessage {
  type: 'memory'
  entries: number[]
  buffers: SharedArrayBuffer[]
}

/** Which shared memory each thread has, so that none is sent twice; see kept-memory.ts. */
export class SentMemory {
  readonly #numbers = new WeakMap<SharedArrayBuffer, Numbered>()
  readonly #lanes: Set<number>[] = []
  readonly #forgotten: FinalizationRegistry<number>
  readonly #forget: (lane: number, number: number) => void
  readonly #garbage = new SharedGarbage()
  #last = 0

  constructor(forget: (lane: number, number: number) => void) {
    this.#forget = forget
    this.#forgotten = new FinalizationRegistry(number => {
      for (const [lane, known] of this.#lanes.entries()) if (known?.delete(number)) forget(lane, number)
    })
  }

  /** A new thread knows nothing. */
  reset(lane: number): void {
    this.#lanes[lane] = new Set()
  }

  /** Writes the list of buffers of a record; returns what the thread has to be sent, if anything. */
  write(encoder: Encoder, buffers: readonly SharedArrayBuffer[], lane: number): MemoryMessage | null {
    const known = this.#lanes[lane] as Set<number>
    let message: MemoryMessage | null = null
    encoder.varint(buffers.length)
    for (const buffer of buffers) {
      const { number, isKept } = this.#numberOf(buffer)
      encoder.varint(number)
      if (known.has(number)) continue
      if (isKept) known.add(number)
      message ??= { type: 'memory', entries: [], buffers: [] }
      message.entries.push(number * 2 + Number(isKept))
      message.buffers.push(buffer)
    }
    return message
  }

  /** A record with this buffer was taken back before the thread has read it. */
  takenBack(buffer: SharedArrayBuffer, lane: number): void {
    const number = this.#numbers.get(buffer)?.number
    if (number !== undefined && !this.#lanes[lane]?.has(number)) this.#forget(lane, number)
  }

  #numberOf(buffer: SharedArrayBuffer): Numbered {
    let entry = this.#numbers.get(buffer)
    if (entry) entry.isKept = true
    else {
      this.#numbers.set(buffer, (entry = { number: ++this.#last, isKept: false }))
      this.#forgotten.register(buffer, entry.number)
      // Memory that was sent this long ago is probably no longer needed.
      this.#garbage.add(buffer.byteLength)
    }
    return entry
  }
}
