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
  const outputs = decoder.at < end ? readOutputs(decoder, blobs) : []
  return { status, printed, startedAt, took, error, outputs }
}

function readOutputs(decoder: Decoder, blobs: readonly ArrayBufferLike[]): (Kept | undefined)[] {
  const count = decoder.varint()
  const beside = { at: 0 }
  if (count === 1) return [readOutput(decoder, blobs, beside)]
  const outputs: (Kept | undefined)[] = []
  for (let i = 0; i < count; i++) outputs.push(readOutput(decoder, blobs, beside))
  return outputs
}

function readOutput(
  decoder: Decoder,
  blobs: readonly ArrayBufferLike[],
  beside: { at: number },
): Kept | undefined {
  const length = decoder.varint()
  if (length === 0) return undefined
  const value = readKept(decoder, decoder.at + length - 1)
  const own = decoder.varint()
  if (own > 0 && value instanceof Stored) value.blobs = blobs.slice(beside.at, beside.at + own)
  beside.at += own
  return value
}

function readKept(decoder: Decoder, after: number): Kept {
  if (decoder.peek() <= TAG.bigint) return keepPrimitive(decoder.value())
  return new Stored(decoder.raw(after - decoder.at).slice(), [])
}
