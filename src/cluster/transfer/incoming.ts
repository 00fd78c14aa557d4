import { TreesIn } from '../files/trees-in.ts'
import { BlockReader, blocksOf, GROWING } from './blocks.ts'
import type { FrameReader } from '../link/frames.ts'
import { Spill } from './spill.ts'
import type { SpillOptions } from './spill.ts'

interface Arriving {
  buffer: ArrayBufferLike
  waiting: (() => void)[]
  /** Bytes from its beginning that are here, and those who wait for more. */
  filled: number
  watching: (() => void)[]
}

/** Buffers that the other side sends, by number. They arrive by two ways, so a reader may have to wait. */
export class Incoming {
  readonly #here = new Map<number, ArrayBufferLike>()
  readonly #arriving = new Map<number, Arriving>()
  readonly #blocks = this.reader(() => undefined)
  /** Files that the other side sends. */
  readonly trees = new TreesIn()
  /** Hears bytes of growing files, in their order. */
  growing: (bytes: Uint8Array) => void = () => undefined
  /** Where those go that do not fit into memory; null where all stay. */
  #spill: Spill | null = null
  readonly #loading = new Set<number>()

  /** Buffers that do not fit into memory go to a disk from now on. */
  spillTo(options: SpillOptions): void {
    this.#spill ??= new Spill(this.#here, options)
  }

  /** It is changed in place, so there must be one of it. */
  pin(number: number): void {
    this.#spill?.pin(number)
  }

  /** Bytes of the connection for large buffers. */
  push(chunk: Uint8Array): void {
    this.#blocks.push(chunk)
  }

  /** For another connection by which buffers come; `complete` hears of each that is here. */
  reader(complete: (number: number) => void): BlockReader {
    return new BlockReader({
      bufferOf: (number, size) => this.#arrivingOf(number, size).buffer,
      filled: (number, end) => this.#filled(number, end),
      complete: number => {
        this.#complete(number)
        complete(number)
      },
      piece: (number, bytes, isLast) => {
        if (number === GROWING) return this.growing(bytes)
        this.trees.piece(number, bytes, isLast)
        if (isLast) complete(number)
      },
    })
  }

  /** Blocks of a buffer for another node, which knows it by `theirs`: also of one that is still arriving. */
  async *blocksOf(number: number, theirs: number): AsyncGenerator<Uint8Array[]> {
    for (let at = 0; ;) {
      const here = this.#here.get(number)
      if (!here) this.#load(number)
      if (here) {
        yield* blocksOf({ number: theirs, buffer: here, offset: at, length: here.byteLength - at })
        return
      }
      // The order to fetch it may come after the question of another node: the other node does not wait for ever.
      const arriving = this.#arrivingOf(number, -1)
      const { buffer, filled } = arriving
      if (filled > at && filled < buffer.byteLength) {
        const rest = buffer.byteLength - filled
        yield* blocksOf({ number: theirs, buffer, offset: at, length: filled - at }, rest)
        at = filled
      } else await new Promise<void>(resolve => arriving.watching.push(resolve))
    }
  }

  #filled(number: number, end: number): void {
    const arriving = this.#arriving.get(number)
    if (!arriving) return
    arriving.filled = Math.max(arriving.filled, end)
    for (const go of arriving.watching.splice(0)) go()
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
    const before = this.#here.get(number)
    if (before) this.#spill?.removed(before)
    this.#here.set(number, buffer)
    this.#spill?.added(number, buffer)
  }

  /** Brings back one that went to the disk. */
  #load(number: number): void {
    const spill = this.#spill
    if (!spill?.isOut(number) || this.#loading.has(number)) return
    this.#loading.add(number)
    this.#arrivingOf(number, -1)
    spill
      .load(number)
      .then(
        buffer => {
          this.#arrivingOf(number, -1).buffer = buffer
          this.#complete(number)
        },
        (error: unknown) => spill.failed(error as Error),
      )
      .finally(() => this.#loading.delete(number))
      .catch(() => undefined)
  }

  /** What is to come under this number goes into this buffer. */
  into(number: number, buffer: ArrayBufferLike): void {
    this.#arrivingOf(number, -1).buffer = buffer
  }

  get(number: number): ArrayBufferLike | undefined {
    return this.#here.get(number)
  }

  forget(number: number): void {
    const before = this.#here.get(number)
    this.#here.delete(number)
    if (before) this.#spill?.removed(before)
    this.#spill?.forget(number)
  }

  /** Calls when all of them are here: at once, where they are. */
  whenHere(numbers: readonly number[], go: (buffers: ArrayBufferLike[]) => void): void {
    let missing = 1
    const next = (): void => {
      if (--missing > 0) return
      go(numbers.map(number => this.#here.get(number) as ArrayBufferLike))
      if (this.#spill) for (const number of numbers) this.#spill.unwant(number)
    }
    for (const number of numbers) {
      this.#spill?.want(number)
      if (this.#here.has(number)) {
        this.#spill?.used(number)
        continue
      }
      missing++
      this.#arrivingOf(number, -1).waiting.push(next)
      this.#load(number)
    }
    next()
  }

  #arrivingOf(number: number, size: number): Arriving {
    let arriving = this.#arriving.get(number)
    if (!arriving)
      this.#arriving.set(number, (arriving = { buffer: EMPTY, waiting: [], filled: 0, watching: [] }))
    if (size >= 0 && arriving.buffer === EMPTY) arriving.buffer = new SharedArrayBuffer(size)
    return arriving
  }

  #complete(number: number): void {
    const arriving = this.#arriving.get(number)
    if (!arriving) return
    this.#arriving.delete(number)
    this.put(number, arriving.buffer)
    for (const go of arriving.waiting) go()
    for (const go of arriving.watching) go()
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
