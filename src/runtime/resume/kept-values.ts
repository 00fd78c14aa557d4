import { NOTHING, Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import { digestLater, digestOf, digestOfAll } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import { roomFor } from './room.ts'

/** What a value is known by. */
export interface ValueDigest {
  readonly digest: Digest
  /** It has instances of classes: their methods are part of what it means. */
  readonly hasClasses: boolean
}

/** Larger values are digested on another thread; bytes. */
const LARGE = 2 ** 20

/** How modules are named in what is encoded. */
const MODULE = Buffer.from('file://')

/** A primitive as text that no other one has. */
export function textOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
      // Also tells lone surrogates apart.
      return JSON.stringify(value)
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value)
    case 'bigint':
      return `${value}n`
    default:
      return String(value)
  }
}

export function digestOfKept(kept: Kept): ValueDigest | Promise<ValueDigest> {
  if (!(kept instanceof Stored))
    return {
      digest: digestOf(`primitive ${kept === NOTHING ? 'undefined' : textOf(kept)}`),
      hasClasses: false,
    }
  const { bytes, blobs } = kept
  const hasClasses = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(MODULE)
  if (blobs.length === 0) return { digest: digestOf(bytes), hasClasses }
  const size = sizeOfKept(kept)
  if (size <= LARGE) return { digest: digestOfAll([bytes, ...blobs.map(viewOf)]), hasClasses }
  // The parts are copied before this returns: what is in them may change right after.
  const parts = [digestLater(bytes), ...blobs.map(blob => digestLater(viewOf(blob)))]
  return Promise.all(parts).then(digests => ({ digest: digestOfAll(digests), hasClasses }))
}

const viewOf = (blob: ArrayBufferLike): Uint8Array => new Uint8Array(blob)

export function sizeOfKept(kept: Kept): number {
  if (!(kept instanceof Stored)) return typeof kept === 'string' ? kept.length : 8
  return kept.blobs.reduce((sum, blob) => sum + blob.byteLength, kept.bytes.length)
}

/** A buffer that a thread has at the moment has no bytes here. */
export const isWhole = (kept: Kept): boolean =>
  !(kept instanceof Stored) || kept.blobs.every(blob => !(blob instanceof ArrayBuffer) || !isDetached(blob))

function isDetached(buffer: ArrayBuffer): boolean {
  if (buffer.byteLength > 0) return false
  try {
    void new Uint8Array(buffer)
    return false
  } catch {
    return true
  }
}

const PRIMITIVE = 1
const STORED = 2

/** A value as bytes: length of its encoding, number and lengths of its buffers, and all of them. */
export function writeKept(kept: Kept): Buffer {
  if (!(kept instanceof Stored)) {
    const text = kept === NOTHING ? '' : typeof kept === 'string' ? `"${JSON.stringify(kept)}` : textOf(kept)
    return Buffer.concat([Buffer.of(PRIMITIVE), Buffer.from(text)])
  }
  const { bytes, blobs } = kept
  const all = roomFor(7 + blobs.length * 6 + sizeOfKept(kept))
  all[0] = STORED
  all.writeUInt32LE(bytes.length, 1)
  all.writeUInt16LE(blobs.length, 5)
  for (const [i, blob] of blobs.entries()) all.writeUIntLE(blob.byteLength, 7 + i * 6, 6)
  let at = 7 + blobs.length * 6
  for (const piece of blobs.length === 0 ? [bytes] : [bytes, ...blobs.map(viewOf)]) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}

/** The value that was written. Buffers are shared ones, which any number of tasks can read. */
export function readKept(bytes: Buffer): Kept {
  if (bytes[0] === PRIMITIVE) return readPrimitive(bytes.toString('utf8', 1))
  const length = bytes.readUInt32LE(1)
  const count = bytes.readUInt16LE(5)
  let at = 7 + count * 6
  const encoded = copyOf(bytes, at, length)
  at += length
  const blobs: SharedArrayBuffer[] = []
  for (let i = 0; i < count; i++) {
    const size = bytes.readUIntLE(7 + i * 6, 6)
    const blob = new SharedArrayBuffer(size)
    new Uint8Array(blob).set(bytes.subarray(at, at + size))
    blobs.push(blob)
    at += size
  }
  return new Stored(encoded, blobs)
}

/** Small values share memory, as a piece of their own takes longer to make than to fill. */
const POOL = 32 * 1024
const POOLED = 1024
let pool = new Uint8Array(0)
let poolAt = 0

/** A plain array: `slice` of a Buffer is no copy, and the decoder takes copies by it. */
function copyOf(bytes: Buffer, at: number, length: number): Uint8Array {
  if (length > POOLED) return new Uint8Array(bytes.subarray(at, at + length))
  if (poolAt + length > pool.length) {
    pool = new Uint8Array(POOL)
    poolAt = 0
  }
  const copy = pool.subarray(poolAt, poolAt + length)
  poolAt += length
  for (let i = 0; i < length; i++) copy[i] = bytes[at + i] as number
  return copy
}

function readPrimitive(text: string): Kept {
  if (text === '') return NOTHING
  if (text[0] === '"') return JSON.parse(text.slice(1)) as string
  if (text === 'null') return null
  if (text === 'true' || text === 'false') return text === 'true'
  return text.endsWith('n') ? BigInt(text.slice(0, -1)) : Number(text)
}
