import type { EncodeHooks } from './encode.ts'
import { isCommon, isShared } from './memory.ts'
import { bytesOf } from './typed-arrays.ts'

/** A value in its encoded form: bytes, and the buffers that go beside them. */
export class Stored {
  readonly #bytes: Uint8Array
  /** Shared buffers can be read by many at once; plain ones exist once and are lent or moved. */
  blobs: readonly ArrayBufferLike[]
  /** What the runtime knows of its content, where results are kept. */
  known: unknown = null

  constructor(bytes: Uint8Array, blobs: readonly ArrayBufferLike[]) {
    this.#bytes = bytes
    this.blobs = blobs
  }

  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** Has buffers that only one thread can have at a time. */
  get exclusive(): boolean {
    return this.blobs.some(blob => !(blob instanceof SharedArrayBuffer))
  }
}

/** `undefined` as a value, where `undefined` means that there is none. */
export const NOTHING = Object.freeze({ nothing: true })

/** What is kept for a value: primitives as they are, everything else encoded. */
export type Kept = Stored | typeof NOTHING | string | number | boolean | bigint | null

export const isPrimitive = (value: unknown): boolean =>
  value === null || (typeof value !== 'object' && typeof value !== 'function' && typeof value !== 'symbol')

export const keepPrimitive = (value: unknown): Kept => (value === undefined ? NOTHING : (value as Kept))

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && Buffer.compare(a, b) === 0

/** Whether two encoded values are the same, so that one copy can serve both. */
export function sameStored(a: Kept, b: Stored): boolean {
  if (!(a instanceof Stored) || a.blobs.length !== b.blobs.length || !sameBytes(a.bytes, b.bytes))
    return false
  return a.blobs.every((blob, i) => {
    const other = b.blobs[i] as ArrayBufferLike
    // A buffer that a thread has at the moment has no bytes here: it cannot be compared.
    if (blob.byteLength !== other.byteLength) return false
    return blob === other || sameBytes(new Uint8Array(blob), new Uint8Array(other))
  })
}

/** A copy of a view in shared memory, where any number of threads can read it. */
export function shareCopy(view: ArrayBufferView): SharedArrayBuffer {
  const copy = new SharedArrayBuffer(view.byteLength)
  new Uint8Array(copy).set(bytesOf(view))
  return copy
}

/** Large arrays go beside the bytes as copies in shared memory, unless they are shared already. */
export const shareBlob: EncodeHooks['blob'] = view =>
  isCommon(view.buffer)
    ? { buffer: view.buffer, offset: view.byteOffset }
    : { buffer: shareCopy(view), offset: 0 }

/** For a value that a task will write: what others read is copied, too. */
export const ownBlob: EncodeHooks['blob'] = view =>
  isShared(view.buffer)
    ? { buffer: view.buffer, offset: view.byteOffset }
    : { buffer: shareCopy(view), offset: 0 }

/** In the place of an array that has changed; no large array has its size. */
const CHANGED = new SharedArrayBuffer(1)

/** Encodes a value for a comparison with what was stored of it: nothing is copied, and the result is of no other use. */
export function compareBlobs(before: Stored): EncodeHooks['blob'] {
  return (view, place) => {
    if (isCommon(view.buffer)) return shareBlob(view, place)
    const blob = before.blobs[place]
    const isSame = blob?.byteLength === view.byteLength && sameBytes(new Uint8Array(blob), bytesOf(view))
    return { buffer: isSame ? blob : CHANGED, offset: 0 }
  }
}
