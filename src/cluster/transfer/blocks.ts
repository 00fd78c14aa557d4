import { crc32 } from 'node:zlib'

/**
 * Large buffers go over a connection of their own, so that messages never wait behind them: in blocks, each with a header of
 * fixed size and a checksum. Blocks of several buffers may alternate.
 */

const HEADER = 48
const BLOCK = 1 << 20
/** The kind of a block, behind its checksum: part of a buffer, or a piece of a stream that goes to a file. */
const PART = 0
const PIECE = 1
/** The number of a stream without an end: bytes of growing files. All others have higher ones. */
export const GROWING = 0

/** Node has it from 20.15 and 22.2 on, which is all that Millrace runs on. */
const checksum = (bytes: Uint8Array): number => crc32(bytes)

/** Part of a buffer: the other side makes all of it, and fills this part. */
export interface Part {
  readonly number: number
  readonly buffer: ArrayBufferLike
  readonly offset: number
  readonly length: number
}

/** Gives the pieces to write, one block at a time. `rest`: how many bytes follow behind the part. */
export function* blocksOf({ number, buffer, offset, length }: Part, rest = 0): Generator<Uint8Array[]> {
  for (let at = 0; at < length || at === 0; at += BLOCK) {
    const size = Math.min(BLOCK, length - at)
    const bytes = new Uint8Array(buffer, offset + at, size)
    const header = Buffer.allocUnsafe(HEADER)
    header.writeDoubleLE(number, 0)
    header.writeDoubleLE(buffer.byteLength, 8)
    header.writeDoubleLE(offset + at, 16)
    header.writeDoubleLE(size, 24)
    // What is missing of the part after this block.
    header.writeDoubleLE(rest + length - at - size, 32)
    header.writeUInt32LE(checksum(bytes), 40)
    header.writeUInt32LE(PART, 44)
    yield [header, bytes]
  }
}

/** One piece of a stream; the last one may be empty. */
export function pieceOf(number: number, bytes: Uint8Array, isLast: boolean): Uint8Array[] {
  const header = Buffer.alloc(HEADER)
  header.writeDoubleLE(number, 0)
  header.writeDoubleLE(bytes.length, 24)
  header.writeDoubleLE(isLast ? 0 : 1, 32)
  header.writeUInt32LE(checksum(bytes), 40)
  header.writeUInt32LE(PIECE, 44)
  return [header, bytes]
}

export interface BlockTarget {
  /** The buffer with this number, made at its first block. */
  bufferOf(number: number, size: number): ArrayBufferLike
  /** What has arrived of it ends here. */
  filled(number: number, end: number): void
  /** All of the part has arrived. */
  complete(number: number): void
  /** A piece of the stream with this number. */
  piece(number: number, bytes: Uint8Array, isLast: boolean): void
}

/** Puts blocks where they belong as they arrive, without a copy in between. */
export class BlockReader {
  readonly #target: BlockTarget
  readonly #header = Buffer.alloc(HEADER)
  #filled = 0
  #into: Uint8Array | null = null
  #at = 0

  constructor(target: BlockTarget) {
    this.#target = target
  }

  /** Throws when a block is not what was sent. */
  push(chunk: Uint8Array): void {
    let at = 0
    // A block without a byte ends with its header.
    while (at < chunk.length || (this.#into && this.#at === this.#into.length)) {
      if (!this.#into) {
        const take = Math.min(HEADER - this.#filled, chunk.length - at)
        this.#header.set(chunk.subarray(at, at + take), this.#filled)
        this.#filled += take
        at += take
        if (this.#filled === HEADER) this.#begin()
        continue
      }
      const take = Math.min(this.#into.length - this.#at, chunk.length - at)
      this.#into.set(chunk.subarray(at, at + take), this.#at)
      this.#at += take
      at += take
      if (this.#at === this.#into.length) this.#end(this.#into)
    }
  }

  #begin(): void {
    const header = this.#header
    this.#at = 0
    if (header.readUInt32LE(44) === PIECE) {
      this.#into = Buffer.allocUnsafeSlow(header.readDoubleLE(24))
      return
    }
    const buffer = this.#target.bufferOf(header.readDoubleLE(0), header.readDoubleLE(8))
    this.#into = new Uint8Array(buffer, header.readDoubleLE(16), header.readDoubleLE(24))
  }

  #end(bytes: Uint8Array): void {
    const header = this.#header
    if (checksum(bytes) !== header.readUInt32LE(40)) {
      throw new Error(
        `the block at ${header.readDoubleLE(16)} of buffer ${header.readDoubleLE(0)} was damaged`,
      )
    }
    this.#into = null
    this.#filled = 0
    const isLast = header.readDoubleLE(32) === 0
    if (header.readUInt32LE(44) === PIECE) this.#target.piece(header.readDoubleLE(0), bytes, isLast)
    else if (isLast) this.#target.complete(header.readDoubleLE(0))
    else this.#target.filled(header.readDoubleLE(0), header.readDoubleLE(16) + header.readDoubleLE(24))
  }
}
