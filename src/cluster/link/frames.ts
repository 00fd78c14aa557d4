/**
 * Frames on a stream of bytes: four bytes of length, one of type, the content. Whatever one pass of the event loop
 * has to say is one write: there is no timer between a message and its departure.
 */

const HEADER = 5
const FIRST_SIZE = 1 << 14
/** A frame that says it is larger comes from a program that does not speak this protocol. */
const LARGEST = 2 ** 31

export class FrameWriter {
  readonly #first: number
  #bytes: Buffer
  #length = 0
  /** Where the frame that is being written begins. */
  #start = -1

  /** `size`: bytes to begin with. */
  constructor(size = FIRST_SIZE) {
    this.#first = size
    this.#bytes = Buffer.allocUnsafeSlow(size)
  }

  get isEmpty(): boolean {
    return this.#length === 0
  }

  get length(): number {
    return this.#length
  }

  begin(type: number): void {
    this.#room(HEADER)
    this.#start = this.#length
    this.#bytes[this.#start + 4] = type
    this.#length += HEADER
  }

  end(): void {
    this.#bytes.writeUInt32LE(this.#length - this.#start - HEADER, this.#start)
    this.#start = -1
  }

  byte(value: number): void {
    this.#room(1)
    this.#bytes[this.#length++] = value
  }

  varint(value: number): void {
    this.#room(8)
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#length++] = rest
  }

  double(value: number): void {
    this.#room(8)
    this.#length = this.#bytes.writeDoubleLE(value, this.#length)
  }

  text(value: string): void {
    const size = Buffer.byteLength(value)
    this.varint(size)
    this.#room(size)
    this.#length += this.#bytes.write(value, this.#length)
  }

  raw(bytes: Uint8Array, length = bytes.length): void {
    this.#room(length)
    this.#bytes.set(bytes.length === length ? bytes : bytes.subarray(0, length), this.#length)
    this.#length += length
  }

  /** Bytes behind their length. */
  block(bytes: Uint8Array, length = bytes.length): void {
    this.varint(length)
    this.raw(bytes, length)
  }

  /** What was written since; the memory belongs to the caller. */
  take(): Buffer {
    const bytes = this.#bytes.subarray(0, this.#length)
    this.#bytes = Buffer.allocUnsafeSlow(this.#first)
    this.#length = 0
    return bytes
  }

  #room(size: number): void {
    const needed = this.#length + size
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}

/** The content of one frame, and where it ends in the chunk that it came with. */
export class FrameReader {
  at = 0
  end = 0
  /** The chunk; records in it are read where they are. */
  bytes: Buffer = Buffer.alloc(0)
  #plain: Uint8Array | null = null

  get isDone(): boolean {
    return this.at >= this.end
  }

  byte(): number {
    return this.bytes[this.at++] as number
  }

  varint(): number {
    let value = 0
    let factor = 1
    for (;;) {
      const byte = this.bytes[this.at++] as number
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
      factor *= 0x80
    }
  }

  double(): number {
    const value = this.bytes.readDoubleLE(this.at)
    this.at += 8
    return value
  }

  text(): string {
    const size = this.varint()
    const text = this.bytes.toString('utf8', this.at, this.at + size)
    this.at += size
    return text
  }

  /** A view: it is valid as long as the chunk is not written, and chunks are not used again. */
  block(): Buffer {
    return this.raw(this.varint())
  }

  raw(size: number): Buffer {
    const bytes = this.bytes.subarray(this.at, this.at + size)
    this.at += size
    return bytes
  }

  /** The chunk as records are read from it: `slice` of a Buffer would not make a copy. */
  get plain(): Uint8Array {
    const { buffer, byteOffset, length } = this.bytes
    if (
      this.#plain?.byteOffset !== byteOffset ||
      this.#plain.buffer !== buffer ||
      this.#plain.length !== length
    ) {
      this.#plain = new Uint8Array(buffer, byteOffset, length)
    }
    return this.#plain
  }

  rest(): Buffer {
    return this.raw(this.end - this.at)
  }
}

/** Cuts a stream of bytes into frames. */
export class FrameSplitter {
  #parts: Buffer[] = []
  #size = 0
  /** How many bytes have to be there before it is worth looking. */
  #needed = HEADER
  readonly #reader = new FrameReader()

  /** Throws when the bytes cannot be frames. */
  push(chunk: Buffer, frame: (type: number, content: FrameReader) => void): void {
    this.#parts.push(chunk)
    this.#size += chunk.length
    if (this.#size < this.#needed) return
    const bytes = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts, this.#size)
    let at = 0
    const reader = this.#reader
    this.#needed = HEADER
    while (bytes.length - at >= HEADER) {
      const size = bytes.readUInt32LE(at)
      if (size > LARGEST) throw new RangeError(`a frame of ${size} bytes`)
      if (bytes.length - at - HEADER < size) {
        this.#needed = HEADER + size
        break
      }
      reader.bytes = bytes
      reader.at = at + HEADER
      at = reader.end = at + HEADER + size
      frame(bytes[reader.at - 1] as number, reader)
    }
    const rest = bytes.length - at
    this.#parts = rest > 0 ? [bytes.subarray(at)] : []
    this.#size = rest
  }
}
