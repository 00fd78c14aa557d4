import { crc32 } from 'node:zlib'
import { Encoder } from '../../model/encoding/encode.ts'
import type { EncodeHooks } from '../../model/encoding/encode.ts'
import type { ClassNames } from '../../model/encoding/instance-class.ts'
import { isShared } from '../../model/encoding/memory.ts'
import { STATUS } from './protocol.ts'
import { writeLength } from './task-outputs.ts'

/** No value counts for more, so that differences of wrapping counters stay what they are. */
const LARGEST = 2 ** 30

/** Writes the records of released values; see protocol.ts for their layout. */
export class ReleaseWriter {
  readonly encoder = new Encoder()
  /** Of the value written last: the checksum that follows `check`, and its size. */
  check = 0
  size = 0
  readonly #hooks: EncodeHooks

  constructor(classes: ClassNames) {
    this.#hooks = { classes, blob: copied }
  }

  /** The value is captured here: what the task does to it afterwards does not matter. */
  write(task: number, startedAt: number, at: number, index: number, value: unknown, check: number): void {
    const { encoder } = this
    encoder.reset()
    encoder.varint(task)
    encoder.byte(STATUS.released)
    encoder.double(startedAt)
    encoder.double(at)
    encoder.varint(index)
    const mark = encoder.length
    encoder.reserve(16)
    encoder.length += 15
    encoder.value(value, this.#hooks)
    const from = mark + 15
    this.check = crc32(encoder.bytes.subarray(from, encoder.length), check)
    this.size = encoder.length - from
    for (const blob of encoder.blobs) {
      this.check = crc32(new Uint8Array(blob), this.check)
      this.size += blob.byteLength
    }
    this.size = Math.min(this.size, LARGEST)
    writeLength(encoder.bytes, mark, this.check)
    writeLength(encoder.bytes, mark + 5, this.size)
    writeLength(encoder.bytes, mark + 10, encoder.length - from + 1)
    encoder.varint(encoder.blobs.length)
  }
}

/** The task goes on with its array, so what is sent is a copy; a plain one, which is moved from then on. */
function copied(view: ArrayBufferView): { buffer: ArrayBufferLike; offset: number } {
  const { buffer, byteOffset, byteLength } = view
  if (isShared(buffer)) return { buffer, offset: byteOffset }
  const copy = new ArrayBuffer(byteLength)
  new Uint8Array(copy).set(new Uint8Array(buffer, byteOffset, byteLength))
  return { buffer: copy, offset: 0 }
}
