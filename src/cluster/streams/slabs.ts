import { FrameReader } from '../link/frames.ts'

/** Holds several frames of a relay. */
const SIZE = 2 << 20
const HEADER = 5
/** A frame that says it is larger comes from a program that does not speak this protocol. */
const LARGEST = 2 ** 31
/** Slabs that are kept for later. */
const SPARE = 8

interface Slab {
  readonly bytes: Buffer
  /** Who still needs what is in it. */
  users: number
}

const slabs = new WeakMap<ArrayBufferLike, Slab>()
const spare: Slab[] = []

function take(size: number): Slab {
  const found = size <= SIZE ? spare.pop() : undefined
  const slab = found ?? { bytes: Buffer.allocUnsafeSlow(Math.max(size, SIZE)), users: 0 }
  slab.users = 1
  if (!found) slabs.set(slab.bytes.buffer, slab)
  return slab
}

function leave(slab: Slab): void {
  slab.users--
  if (slab.users === 0 && slab.bytes.length === SIZE && spare.length < SPARE) spare.push(slab)
}

/** Bytes that came by a `FrameIntake` stay as they are until they are let go. */
export function keep(bytes: Buffer): void {
  const slab = slabs.get(bytes.buffer)
  if (slab) slab.users++
}

export function letGo(bytes: Buffer): void {
  const slab = slabs.get(bytes.buffer)
  if (slab) leave(slab)
}

/**
 * Cuts a stream of bytes into frames, in memory that is used again and again. Chunks that are garbage after a
 * moment made V8 collect the whole heap for every 14 MB of a stream: a third of the time of a node.
 */
export class FrameIntake {
  readonly #frame: (type: number, content: FrameReader) => void
  readonly #reader = new FrameReader()
  #slab: Slab | null = null
  #from = 0
  #to = 0
  /** How many bytes from `#from` on there must be before it is worth looking. */
  #needed = HEADER

  /** `frame` gets content that is valid until it returns, unless it is kept. */
  constructor(frame: (type: number, content: FrameReader) => void) {
    this.#frame = frame
  }

  /** Where bytes that come next may be put; then `took` says how many there are. */
  room(least = 1): Buffer {
    const rest = this.#to - this.#from
    const slab = this.#slab
    if (slab && rest === 0 && slab.users === 1) this.#from = this.#to = 0
    const needed = Math.max(this.#needed, rest + least)
    if (slab && this.#from + needed <= slab.bytes.length) return slab.bytes.subarray(this.#to)
    const next = take(needed)
    if (slab) {
      next.bytes.set(slab.bytes.subarray(this.#from, this.#to))
      leave(slab)
    }
    this.#slab = next
    this.#from = 0
    this.#to = rest
    return next.bytes.subarray(rest)
  }

  /** Throws when the bytes cannot be frames. */
  took(count: number): void {
    this.#to += count
    const slab = this.#slab
    if (!slab || this.#to - this.#from < this.#needed) return
    const { bytes } = slab
    const reader = this.#reader
    this.#needed = HEADER
    while (this.#to - this.#from >= HEADER) {
      const size = bytes.readUInt32LE(this.#from)
      if (size > LARGEST) throw new RangeError(`a frame of ${size} bytes`)
      if (this.#to - this.#from - HEADER < size) {
        this.#needed = HEADER + size
        return
      }
      const at = this.#from + HEADER
      this.#from = at + size
      reader.bytes = bytes
      reader.at = at
      reader.end = at + size
      this.#frame(bytes[at - 1] as number, reader)
    }
  }

  push(chunk: Buffer): void {
    this.room(chunk.length).set(chunk)
    this.took(chunk.length)
  }

  /** Nothing more comes. */
  end(): void {
    if (this.#slab) leave(this.#slab)
    this.#slab = null
    this.#from = this.#to = 0
    this.#needed = HEADER
  }
}
