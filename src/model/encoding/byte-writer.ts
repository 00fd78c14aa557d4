import { constants } from 'node:buffer'
import { MillraceError } from '../../core/errors.ts'

/** Bytes that grow: numbers and texts in the forms that `Decoder` reads. */
export class ByteWriter {
  bytes: Uint8Array = new Uint8Array(1024)
  length = 0
  #view = new DataView(this.bytes.buffer)
  #buffer = Buffer.from(this.bytes.buffer)

  /** A copy of the bytes written since `from`. */
  copy(from = 0): Uint8Array {
    return this.bytes.slice(from, this.length)
  }

  reserve(more: number): void {
    const needed = this.length + more
    if (needed <= this.bytes.length) return
    if (needed > constants.MAX_LENGTH) throw tooLarge(needed)
    const grown = new Uint8Array(Math.min(Math.max(needed, this.bytes.length * 2), constants.MAX_LENGTH))
    grown.set(this.bytes.subarray(0, this.length))
    this.bytes = grown
    this.#view = new DataView(grown.buffer)
    this.#buffer = Buffer.from(grown.buffer)
  }

  byte(value: number): void {
    this.reserve(1)
    this.bytes[this.length++] = value
  }

  /** Whole numbers from 0; seven bits per byte. */
  varint(value: number): void {
    this.reserve(8)
    let rest = value
    while (rest >= 0x80) {
      this.bytes[this.length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.bytes[this.length++] = rest
  }

  double(value: number): void {
    this.reserve(8)
    this.#view.setFloat64(this.length, value, true)
    this.length += 8
  }

  /** Four bytes. */
  word(value: number): void {
    this.reserve(4)
    this.setWord(this.length, value)
    this.length += 4
  }

  setWord(at: number, value: number): void {
    this.#view.setUint32(at, value, true)
  }

  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length)
    this.bytes.set(bytes, this.length)
    this.length += bytes.length
  }

  /**
   * Text with its length in front. Lone surrogates are legal in JavaScript and must survive; and no more bytes of UTF-8
   * can be read than a text may have characters.
   */
  text(value: string): void {
    const { length } = value
    if (length < 24) {
      this.reserve(length + 2)
      const start = this.length
      this.bytes[this.length++] = length << 1
      let i = 0
      for (; i < length; i++) {
        const unit = value.charCodeAt(i)
        if (unit >= 0x80) break
        this.bytes[this.length++] = unit
      }
      if (i === length) return
      this.length = start
    }
    const size = value.isWellFormed() ? Buffer.byteLength(value) : Infinity
    if (size <= constants.MAX_STRING_LENGTH) {
      this.varint(size * 2)
      this.reserve(size)
      this.#buffer.write(value, this.length, 'utf8')
      this.length += size
    } else {
      this.varint(length * 4 + 1)
      this.reserve(length * 2)
      this.#buffer.write(value, this.length, 'utf16le')
      this.length += length * 2
    }
  }
}

const tooLarge = (bytes: number): MillraceError =>
  new MillraceError(
    'MR_NOT_CLONEABLE',
    `the value has ${(bytes / 1e9).toFixed(1)} GB, more than can go to a thread at once`,
    { hint: 'Pass large data as typed arrays, which are shared, or as files.' },
  )
