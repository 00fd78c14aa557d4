import { STATUS } from './protocol.ts'
import type { Decoder } from '../../model/encoding/decode.ts'
import { Stored, keepPrimitive } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import { TAG } from '../../model/encoding/tags.ts'
import type { EarlyValue } from '../node.ts'

export interface Result {
  status: number
  printed: boolean
  startedAt: number
  took: number
  error: unknown
  /** Undefined for memory that was written in place, and for what was released before. */
  outputs: (Kept | undefined)[]
  inThread: ThreadSteps | null
}

/** Reads a result record behind its task number (see protocol.ts). Values stay encoded. */
export function readResult(decoder: Decoder, end: number, blobs: readonly ArrayBufferLike[]): Result {
  const status = decoder.byte()
  const printed = decoder.byte() === 1
  const startedAt = Math.round(decoder.double() * 1000) / 1000
  const took = Math.round(decoder.double() * 1000) / 1000
  const error = status === STATUS.failed ? decoder.value() : undefined
  const outputs = decoder.at < end ? readOutputs(decoder, blobs) : []
  return { status, printed, startedAt, took, error, outputs, inThread: null }
}

/** What a thread measured of an attempt; milliseconds. */
export interface ThreadSteps {
  readonly decode: number
  readonly wait: number
  readonly encode: number
}

/** Reads what follows the result of a task whose steps are measured; null for one that did not begin. */
export function readSteps(decoder: Decoder, end: number): ThreadSteps | null {
  if (decoder.at >= end) return null
  return { decode: decoder.double(), wait: decoder.double(), encode: decoder.double() }
}

function readOutputs(decoder: Decoder, blobs: readonly ArrayBufferLike[]): (Kept | undefined)[] {
  const count = decoder.varint()
  if (count === 1) return [readOutput(decoder, blobs, 0).value]
  const outputs: (Kept | undefined)[] = []
  let beside = 0
  for (let i = 0; i < count; i++) {
    const output = readOutput(decoder, blobs, beside)
    beside = output.beside
    outputs.push(output.value)
  }
  return outputs
}

/** One output, whose buffers begin at `beside`; those of the next begin where it returns. */
export function readOutput(
  decoder: Decoder,
  blobs: readonly ArrayBufferLike[],
  beside: number,
): { value: Kept | undefined; beside: number } {
  const length = decoder.varint()
  if (length === 0) return { value: undefined, beside }
  const value = readKept(decoder, decoder.at + length - 1)
  const own = decoder.varint()
  if (own > 0 && value instanceof Stored) value.blobs = blobs.slice(beside, beside + own)
  return { value, beside: beside + own }
}

function readKept(decoder: Decoder, after: number): Kept {
  if (decoder.peek() <= TAG.bigint) return keepPrimitive(decoder.value())
  return new Stored(decoder.raw(after - decoder.at).slice(), [])
}

/** Reads a release record behind its status (see protocol.ts). The value is null if it was sent before. */
export function readRelease(
  decoder: Decoder,
  blobs: readonly ArrayBufferLike[],
): { startedAt: number; value: EarlyValue | null } {
  const startedAt = microseconds(decoder.double())
  const at = microseconds(decoder.double())
  const index = decoder.varint()
  const check = decoder.varint()
  const bytes = decoder.varint()
  const { value } = readOutput(decoder, blobs, 0)
  return { startedAt, value: value === undefined ? null : { index, value, bytes, check, at } }
}

const microseconds = (milliseconds: number): number => Math.round(milliseconds * 1000) / 1000
