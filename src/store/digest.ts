import { createHash, hash, webcrypto } from 'node:crypto'
import { KEY_BYTES } from './format.ts'

/** The first 16 bytes of a SHA-256. */
export type Digest = Buffer

/** Of bytes that are in memory. */
export function digestOf(bytes: Uint8Array | string): Digest {
  // By way of a text: memory of its own for each digest would take longer than the digest.
  return Buffer.from(hash('sha256', bytes, 'binary').slice(0, KEY_BYTES), 'latin1')
}

/** Of several pieces, as if they were one. */
export function digestOfAll(pieces: Iterable<Uint8Array | string>): Digest {
  const sum = createHash('sha256')
  for (const piece of pieces) sum.update(piece)
  return sum.digest().subarray(0, KEY_BYTES)
}

/** The same as `digestOf`, on another thread; the bytes are copied first, so they may change meanwhile. */
export async function digestLater(bytes: Uint8Array): Promise<Digest> {
  const plain = bytes.buffer instanceof SharedArrayBuffer ? bytes.slice() : bytes
  const sum = await webcrypto.subtle.digest('SHA-256', plain as Uint8Array<ArrayBuffer>)
  return Buffer.from(sum, 0, KEY_BYTES)
}

export const hexOf = (digest: Digest): string => digest.toString('hex')

export const sameDigest = (one: Digest, other: Digest): boolean => Buffer.compare(one, other) === 0
