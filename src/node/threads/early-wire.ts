import { MillraceError } from '../../core/errors.ts'
import type { Decoder } from '../../model/encoding/decode.ts'
import type { Encoder } from '../../model/encoding/encode.ts'

/**
 * What an attempt has to know of values that are released before the task ends: where a generator's buffer
 * stands, and what earlier attempts have released. That stays what it was, whatever later attempts do: so
 * they have to come to the same.
 */
export type EarlyStart = GeneratorStart | ReadyStart

export interface GeneratorStart {
  readonly type: 'generator'
  /** Where the coordinator counts what was consumed; see WORD. */
  readonly memory: SharedArrayBuffer
  /** Room of the buffer. */
  readonly items: number
  readonly bytes: number
  /** Values that earlier attempts released, their checksum, and their bytes. */
  readonly count: number
  readonly check: number
  readonly made: number
}

export interface ReadyStart {
  readonly type: 'ready'
  /** The checksum of each value that earlier attempts released, by index. */
  readonly checks: ReadonlyMap<number, number>
}

/** Words of a channel's memory. The coordinator writes them; threads look without asking. */
export const WORD = {
  /** Values and bytes that are no longer needed. The counters wrap around; differences stay right. */
  consumed: 0,
  consumedBytes: 1,
  /** Consumers want no more values. */
  closed: 2,
  /** Values that were ready to be taken. */
  available: 3,
} as const

export const WORDS = 4

/** Whether a generator with this number of values may go on. Values of earlier attempts do not count: they are there already. */
export function hasRoom(
  words: Int32Array,
  { count, items, bytes }: GeneratorStart,
  made: number,
  madeBytes: number,
): boolean {
  if (made < count) return true
  const waiting = (made - Atomics.load(words, WORD.consumed)) | 0
  const waitingBytes = (madeBytes - Atomics.load(words, WORD.consumedBytes)) | 0
  return waiting < items && waitingBytes < bytes
}

/** Memory that changes while threads look at it: threads on other machines have a copy, which has to follow. */
const live = new WeakSet<SharedArrayBuffer>()

export function liveMemory(): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(WORDS * 4)
  live.add(memory)
  return memory
}

export const isLiveMemory = (memory: SharedArrayBuffer): boolean => live.has(memory)

const GENERATOR = 1
const READY = 2

export function writeEarly(encoder: Encoder, early: EarlyStart): void {
  if (early.type === 'ready') {
    encoder.byte(READY)
    encoder.varint(early.checks.size)
    for (const [index, check] of early.checks) {
      encoder.varint(index)
      encoder.varint(check)
    }
    return
  }
  encoder.byte(GENERATOR)
  encoder.varint(encoder.blobs.push(early.memory) - 1)
  encoder.varint(early.items)
  encoder.varint(early.bytes)
  encoder.varint(early.count)
  encoder.varint(early.check)
  encoder.varint(early.made)
}

export function readEarly(decoder: Decoder, blobs: readonly ArrayBufferLike[]): EarlyStart {
  if (decoder.byte() === READY) {
    const checks = new Map<number, number>()
    for (let left = decoder.varint(); left > 0; left--) checks.set(decoder.varint(), decoder.varint())
    return { type: 'ready', checks }
  }
  return {
    type: 'generator',
    memory: blobs[decoder.varint()] as SharedArrayBuffer,
    items: decoder.varint(),
    bytes: decoder.varint(),
    count: decoder.varint(),
    check: decoder.varint(),
    made: decoder.varint(),
  }
}

/** A released value may be in use, so a later attempt cannot replace it by another. */
export const changed = (what: string): MillraceError =>
  new MillraceError('MR_RELEASE_CHANGED', `${what}, unlike the attempt that released it`)
