import { STATUS } from '../execute/protocol.ts'
import type { Decoder } from '../model/decode.ts'
import { Stored, keepPrimitive } from '../model/stored.ts'
import type { Kept } from '../model/stored.ts'
import { TAG } from '../model/tags.ts'

export interface Result {
  status: number
  printed: boolean
  startedAt: number
  took: number
  error: unknown
  /** Undefined for memory that was written in place. */
  outputs: (Kept | undefined)[]
}

/** Reads a result record behind its task number (see execute/protocol.ts). Values stay encoded. */
export function readResult(decoder: Decoder, end: number, blobs: readonly ArrayBufferLike[]): Result {
  const status = decoder.byte()
  const printed = decoder.byte() === 1
  const startedAt = Math.round(decoder.double() * 1000) / 1000
  const took = Math.round(decoder.double() * 1000) / 1000
  const error = status === STATUS.failed ? decoder.value() : undefined
  const outputs: (Kept | undefined)[] = []
  let beside = 0
  if (decoder.at < end) {
    for (let count = decoder.varint(); count > 0; count--) {
      const length = decoder.varint()
      if (length === 0) {
        outputs.push(undefined)
        continue
      }
      const after = decoder.at + length - 1
      const value = readKept(decoder, after)
      const own = decoder.varint()
      if (own > 0 && value instanceof Stored) value.blobs = blobs.slice(beside, beside + own)
      beside += own
      outputs.push(value)
    }
  }
  return { status, printed, startedAt, took, error, outputs }
}

function readKept(decoder: Decoder, after: number): Kept {
  if (decoder.peek() <= TAG.bigint) return keepPrimitive(decoder.value())
  return new Stored(decoder.raw(after - decoder.at).slice(), [])
}
