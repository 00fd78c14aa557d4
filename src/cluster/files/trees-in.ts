import type { Hash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { TreeWriter } from './tree.ts'

/** Bytes that may wait for the disk before the connection has to. */
const MOST_WAITING = 16 << 20

interface Piece {
  readonly bytes: Uint8Array
  readonly isLast: boolean
}

interface Arriving {
  /** Null until it is known where it belongs. */
  writer: TreeWriter | null
  /** Sees all of it, where it is to be known by its content. */
  hash: Hash | null
  readonly pieces: Piece[]
  isWriting: boolean
  /** It has failed: what comes of it is dropped. */
  isVoid: boolean
  resolve: (bytes: number) => void
  reject: (error: Error) => void
}

/** Files and directories that arrive as streams, each written as it comes. The disk sets the pace. */
export class TreesIn {
  readonly #arriving = new Map<number, Arriving>()
  readonly #streams = new Set<Duplex>()
  #waiting = 0
  #isPaused = false
  #lostBecause: Error | null = null
  #last = 0

  /** A connection that they come by. */
  connect(stream: Duplex): void {
    this.#streams.add(stream)
    stream.once('close', () => this.#streams.delete(stream))
    if (this.#isPaused) stream.pause()
  }

  /** Writes the stream with this number to a path. Resolves with its bytes when all of it is there. */
  expect(number: number, path: string, hash: Hash | null = null): Promise<number> {
    if (this.#lostBecause) return Promise.reject(this.#lostBecause)
    return new Promise((resolve, reject) => {
      const arriving = this.#of(number)
      Object.assign(arriving, { writer: new TreeWriter(path, ++this.#last), hash, resolve, reject })
      this.#write(number, arriving)
    })
  }

  piece(number: number, bytes: Uint8Array, isLast: boolean): void {
    const arriving = this.#of(number)
    this.#waiting += bytes.length
    arriving.pieces.push({ bytes, isLast })
    this.#setPace()
    this.#write(number, arriving)
  }

  /** No more of it will come. */
  fail(number: number, error: Error): void {
    const arriving = this.#arriving.get(number)
    if (!arriving) return
    this.#arriving.delete(number)
    void this.#give(number, arriving, error)
  }

  /** Pieces wait for the disk. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Nothing more will come. */
  cutOff(error: Error): void {
    this.#lostBecause = error
    for (const [number, arriving] of this.#arriving) void this.#give(number, arriving, error)
  }

  #of(number: number): Arriving {
    let arriving = this.#arriving.get(number)
    if (!arriving) {
      const nothing = (): void => undefined
      arriving = {
        writer: null,
        hash: null,
        pieces: [],
        isWriting: false,
        isVoid: false,
        resolve: nothing,
        reject: nothing,
      }
      this.#arriving.set(number, arriving)
    }
    return arriving
  }

  #write(number: number, arriving: Arriving): void {
    if (arriving.isWriting || !arriving.writer) return
    arriving.isWriting = true
    void this.#writeAll(number, arriving, arriving.writer)
  }

  async #writeAll(number: number, arriving: Arriving, writer: TreeWriter): Promise<void> {
    for (let piece = arriving.pieces.shift(); piece; piece = arriving.pieces.shift()) {
      try {
        arriving.hash?.update(piece.bytes)
        if (!arriving.isVoid) await writer.push(piece.bytes)
        if (piece.isLast && !arriving.isVoid) await writer.end()
      } catch (error) {
        await this.#give(number, arriving, error as Error)
      }
      this.#waiting -= piece.bytes.length
      this.#setPace()
      if (!piece.isLast) continue
      this.#arriving.delete(number)
      if (!arriving.isVoid) arriving.resolve(writer.bytes)
    }
    arriving.isWriting = false
  }

  async #give(number: number, arriving: Arriving, error: Error): Promise<void> {
    if (arriving.isVoid) return
    arriving.isVoid = true
    if (this.#lostBecause) this.#arriving.delete(number)
    await arriving.writer?.abandon()
    arriving.reject(error)
  }

  #setPace(): void {
    const isTooMuch = this.#waiting > MOST_WAITING
    if (isTooMuch === this.#isPaused) return
    this.#isPaused = isTooMuch
    for (const stream of this.#streams)
      if (isTooMuch) stream.pause()
      else stream.resume()
  }
}
