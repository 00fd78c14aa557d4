import type { RunEvent } from '../../core/events.ts'
import { BLOCK_HEADER_BYTES, HEADER_BYTES } from './format.ts'
import { decodePayload, openJournal, readPayload, type JournalSource } from './reader.ts'

/**
 * Reads a journal that is still being written, block by block. A block that is not complete yet is left for the next
 * call. The writer knows nothing of it.
 */
export class JournalTail {
  readonly #path: string
  #source: JournalSource | null = null
  #offset = HEADER_BYTES

  constructor(path: string) {
    this.#path = path
  }

  /** Bytes that have been read. */
  get offset(): number {
    return this.#offset
  }

  /** The events of the next complete block, or null if there is none at present. */
  async next(): Promise<RunEvent[] | null> {
    this.#source ??= await this.#open()
    if (!this.#source) return null
    if (this.#offset >= this.#source.size) await this.#grow(this.#source)
    let events = await this.#read(this.#source)
    if (events === null && (await this.#grow(this.#source))) events = await this.#read(this.#source)
    return events
  }

  /** Whether something was written that has not been read. */
  async hasMore(): Promise<boolean> {
    if (this.#source) await this.#grow(this.#source)
    return this.#source !== null && this.#offset < this.#source.size
  }

  async close(): Promise<void> {
    const source = this.#source
    this.#source = null
    await source?.file.close()
  }

  /** Until the header is written there is nothing to read. */
  async #open(): Promise<JournalSource | null> {
    const source = await openJournal(this.#path, 1024 * 1024)
    if (source.size >= HEADER_BYTES) return source
    await source.file.close()
    return null
  }

  async #grow(source: JournalSource): Promise<boolean> {
    const { size } = await source.file.stat()
    const hasGrown = size > source.size
    source.size = size
    return hasGrown
  }

  async #read(source: JournalSource): Promise<RunEvent[] | null> {
    const payload = await readPayload(source, this.#offset)
    const events = payload && decodePayload(payload)
    if (!payload || !events) {
      // What was read of an incomplete block must be read again.
      source.window = Buffer.alloc(0)
      return null
    }
    this.#offset += BLOCK_HEADER_BYTES + payload.length
    return events
  }
}
