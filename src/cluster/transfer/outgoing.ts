import type { Duplex } from 'node:stream'
import type { FrameWriter } from '../link/frames.ts'
import { BLOB } from '../link/frame-types.ts'
import { blocksOf, GROWING, pieceOf } from './blocks.ts'
import type { Part } from './blocks.ts'

/** Buffers up to this size go with the messages; larger ones on their own connection. */
const SMALL = 1 << 16
/** Buffers from this size on go from node to node, and stay where they were made until they are wanted elsewhere; bytes. */
export const DIRECT = 1 << 18

/** What is sent in blocks: a buffer, or a stream of a file. */
type Blocks = Iterator<Uint8Array[]> | AsyncIterator<Uint8Array[]>

/** Sends parts of buffers, each by the way that suits its size, and streams. */
export class Outgoing {
  readonly #writer: FrameWriter
  #stream: Duplex | null = null
  /** Blocks of all of them go in turn: a large file does not hold up a value. */
  #sending: Blocks[] = []
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
      this.#sending.push(blocksOf(part))
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

  /** The same for what may still be arriving here. */
  sendBlocks(blocks: AsyncIterator<Uint8Array[]>): void {
    this.#sending.push(blocks)
    this.#pump()
  }

  /** Sends bytes of growing files, in the order in which they are given. */
  sendGrowing(bytes: Uint8Array): void {
    this.bytes += bytes.length
    this.#sending.push([pieceOf(GROWING, bytes, false)].values())
    this.#pump()
  }

  /** Sends a stream under a number that the other side knows. */
  sendStream(number: number, pieces: AsyncIterable<Uint8Array>): void {
    this.#sending.push(this.#streamed(number, pieces))
    this.#pump()
  }

  async *#streamed(number: number, pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array[]> {
    for await (const blocks of piecesOf(number, pieces)) {
      this.bytes += blocks[1]?.length ?? 0
      yield blocks
    }
  }

  #pump(): void {
    if (this.#isSending || !this.#stream) return
    this.#isSending = true
    void this.#sendAll(this.#stream).catch(() => this.#closeAll())
  }

  /** Files that were being read are closed. */
  #closeAll(): void {
    for (const blocks of this.#sending.splice(0)) void blocks.return?.()
  }

  async #sendAll(stream: Duplex): Promise<void> {
    while (this.#sending.length > 0) {
      const round = this.#sending
      this.#sending = []
      for (const blocks of round) {
        this.#sending.push(blocks)
        const next = blocks.next()
        const { value, done } = next instanceof Promise ? await next : next
        if (done) {
          this.#sending.splice(this.#sending.indexOf(blocks), 1)
          continue
        }
        let hasRoom = true
        for (const piece of value) hasRoom = stream.write(piece)
        if (!hasRoom) await roomIn(stream)
      }
    }
    this.#isSending = false
  }
}

const NOTHING = new Uint8Array(0)

/** The blocks of a stream, behind which comes an empty one. */
export async function* piecesOf(
  number: number,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array[]> {
  for await (const piece of pieces) yield pieceOf(number, piece, false)
  yield pieceOf(number, NOTHING, true)
}

/** One that is closed never has room again, and then what would be sent is not needed any more. */
export function roomIn(stream: Duplex): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (): void => {
      stream.off('drain', done)
      stream.off('close', closed)
      resolve()
    }
    const closed = (): void => {
      stream.off('drain', done)
      reject(new Error('the connection was closed'))
    }
    stream.once('drain', done)
    stream.once('close', closed)
    if (stream.destroyed) closed()
  })
}
