import { TreesIn } from '../files/trees-in.ts'
import { BlockReader } from './blocks.ts'
import type { FrameReader } from '../link/frames.ts'

interface Arriving {
  buffer: ArrayBufferLike
  waiting: (() => void)[]
}

/** Buffers that the other side sends, by number. They arrive by two ways, so a reader may have to wait. */
export class Incoming {
  readonly #here = new Map<number, ArrayBufferLike>()
  readonly #arriving = new Map<number, Arriving>()
  readonly #blocks = new BlockReader({
    bufferOf: (number, size) => this.#arrivingOf(number, size).buffer,
    complete: number => this.#complete(number),
    piece: (number, bytes, isLast) => this.trees.piece(number, bytes, isLast),
  })
  /** Files that the other side sends. */
  readonly trees = new TreesIn()

  /** Bytes of the connection for large buffers. */
  push(chunk: Uint8Array): void {
    this.#blocks.push(chunk)
  }

  /** A small buffer, among the messages. */
  frame(content: FrameReader): void {
    const number = content.varint()
    const size = content.varint()
    const offset = content.varint()
    const bytes = content.block()
    const { buffer } = this.#arrivingOf(number, size)
    new Uint8Array(buffer, offset, bytes.length).set(bytes)
    this.#complete(number)
  }

  put(number: number, buffer: ArrayBufferLike): void {
    this.#here.set(number, buffer)
  }

  get(number: number): ArrayBufferLike | undefined {
    return this.#here.get(number)
  }

  forget(number: number): void {
    this.#here.delete(number)
  }

  /** Calls when all of them are here: at once, where they are. */
  whenHere(numbers: readonly number[], go: (buffers: ArrayBufferLike[]) => void): void {
    let missing = 0
    const next = (): void => {
      if (--missing === 0) go(numbers.map(number => this.#here.get(number) as ArrayBufferLike))
    }
    for (const number of numbers) {
      if (this.#here.has(number)) continue
      missing++
      this.#arrivingOf(number, -1).waiting.push(next)
    }
    if (missing === 0) go(numbers.map(number => this.#here.get(number) as ArrayBufferLike))
  }

  #arrivingOf(number: number, size: number): Arriving {
    let arriving = this.#arriving.get(number)
    if (!arriving) this.#arriving.set(number, (arriving = { buffer: EMPTY, waiting: [] }))
    if (size >= 0 && arriving.buffer === EMPTY) arriving.buffer = new SharedArrayBuffer(size)
    return arriving
  }

  #complete(number: number): void {
    const arriving = this.#arriving.get(number)
    if (!arriving) return
    this.#arriving.delete(number)
    this.#here.set(number, arriving.buffer)
    for (const go of arriving.waiting) go()
  }
}

const EMPTY = new SharedArrayBuffer(0)

/** Things that happen in their order, of which some have to wait for buffers. */
export class Ordered {
  readonly #queue: { isReady: boolean; go: () => void }[] = []

  /** `wait` calls back when `go` may be called; it is called after all that came before. */
  push(wait: (ready: () => void) => void, go: () => void): void {
    const entry = { isReady: false, go }
    this.#queue.push(entry)
    wait(() => {
      entry.isReady = true
      this.#run()
    })
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0
  }

  #run(): void {
    while (this.#queue[0]?.isReady) this.#queue.shift()?.go()
  }
}
