import { SharedGarbage } from './shared-garbage.ts'
import type { Decoder } from '../../model/encoding/decode.ts'

/**
 * Shared memory that was sent to this thread, by number. Records refer to it, so that they need no message of
 * their own, and memory that many tasks use is sent once.
 */
export class KeptMemory {
  readonly #garbage = new SharedGarbage()
  readonly #buffers = new Map<number, { buffer: SharedArrayBuffer; isKept: boolean }>()

  /** Each entry is a number twice, plus one when more records will refer to it. */
  add(entries: readonly number[], buffers: readonly SharedArrayBuffer[]): void {
    for (const [i, entry] of entries.entries()) {
      this.#buffers.set(Math.floor(entry / 2), {
        buffer: buffers[i] as SharedArrayBuffer,
        isKept: entry % 2 === 1,
      })
    }
  }

  forget(number: number): void {
    const kept = this.#buffers.get(number)
    this.#buffers.delete(number)
    if (kept) this.#garbage.add(kept.buffer.byteLength)
  }

  /** Reads the buffers of a record from its list of them; what is used only once is not kept. */
  take(decoder: Decoder): SharedArrayBuffer[] {
    const used: number[] = []
    const buffers = Array.from({ length: decoder.varint() }, () => {
      const number = decoder.varint()
      const kept = this.#buffers.get(number)
      if (!kept) throw new Error(`memory ${number} was not sent`)
      if (!kept.isKept) used.push(number)
      return kept.buffer
    })
    for (const number of used) this.forget(number)
    return buffers
  }
}
