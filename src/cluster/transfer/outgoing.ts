import type { Duplex } from 'node:stream'
import type { FrameWriter } from '../link/frames.ts'
import { BLOB } from '../link/frame-types.ts'
import { blocksOf } from './blocks.ts'
import type { Part } from './blocks.ts'

/** Buffers up to this size go with the messages; larger ones on their own connection. */
const SMALL = 1 << 16

/** Sends parts of buffers, each by the way that suits its size. */
export class Outgoing {
  readonly #writer: FrameWriter
  #stream: Duplex | null = null
  readonly #waiting: Part[] = []
  #isSending = false
  /** Bytes that went out, for those who want to know what a run moved. */
  bytes = 0

  constructor(writer: FrameWriter) {
    this.#writer = writer
  }

  /** The connection for large buffers is there. */
  connect(stream: Duplex): void {
    this.#stream = stream
    this.#pump()
  }

  send(part: Part): void {
    this.bytes += part.length
    if (part.length > SMALL) {
      this.#waiting.push(part)
      this.#pump()
      return
    }
    const { number, buffer, offset, length } = part
    const writer = this.#writer
    writer.begin(BLOB)
    writer.varint(number)
    writer.varint(buffer.byteLength)
    writer.varint(offset)
    writer.block(new Uint8Array(buffer, offset, length))
    writer.end()
  }

  #pump(): void {
    if (this.#isSending || !this.#stream) return
    this.#isSending = true
    void this.#sendAll(this.#stream).catch(() => undefined)
  }

  async #sendAll(stream: Duplex): Promise<void> {
    for (let part = this.#waiting.shift(); part; part = this.#waiting.shift()) {
      for (const pieces of blocksOf(part)) {
        let hasRoom = true
        for (const piece of pieces) hasRoom = stream.write(piece)
        if (!hasRoom) await new Promise<void>(resolve => stream.once('drain', resolve))
      }
    }
    this.#isSending = false
  }
}
