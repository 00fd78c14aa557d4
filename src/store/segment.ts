import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { MillraceError } from '../core/errors.ts'
import type { Owner } from '../storage/owner.ts'
import type { Appender, OpenAppender } from './disk.ts'
import type { Digest } from './digest.ts'
import {
  BLOCK_HEADER_BYTES,
  BLOCK_MAGIC,
  ENTRY_BYTES,
  HEADER_BYTES,
  KEYS_MAGIC,
  KEY_BYTES,
  OWNER_BYTES,
  STORE_VERSION,
} from './format.ts'
import type { EntryType } from './format.ts'

/** Something that is to be written: `payload` includes the digests of its objects. */
export interface Addition {
  readonly type: EntryType
  readonly key: Digest
  readonly payload: Uint8Array
  readonly objects: number
}

const NOTHING = Buffer.alloc(0)

export const payloadless = (type: EntryType, key: Digest): Addition => ({
  type,
  key,
  payload: NOTHING,
  objects: 0,
})

/** Appends to the two files of one run. */
export class SegmentWriter {
  readonly #keys: Appender
  readonly #data: Appender
  #offset = 0

  private constructor(keys: Appender, data: Appender) {
    this.#keys = keys
    this.#data = data
  }

  static async create(base: string, owner: Owner, open: OpenAppender): Promise<SegmentWriter> {
    const data = await open(`${base}.data`)
    const keys = await open(`${base}.keys`)
    await keys.append(headerOf(owner))
    return new SegmentWriter(keys, data)
  }

  /** Writes all of them with one entry each, and returns the entries, as they are in the file. */
  async append(additions: readonly Addition[], seconds: number): Promise<Int32Array> {
    const block = Buffer.alloc(BLOCK_HEADER_BYTES + additions.length * ENTRY_BYTES)
    let at = BLOCK_HEADER_BYTES
    let offset = this.#offset
    for (const { type, key, payload, objects } of additions) {
      key.copy(block, at, 0, KEY_BYTES)
      block.writeUInt32LE(offset % 2 ** 32, at + 16)
      block.writeUInt16LE(Math.floor(offset / 2 ** 32), at + 20)
      block.writeUInt16LE(type, at + 22)
      block.writeUInt32LE(payload.length, at + 24)
      block.writeUInt32LE(crc32(payload), at + 28)
      block.writeUInt32LE(seconds, at + 32)
      block.writeUInt32LE(objects, at + 36)
      at += ENTRY_BYTES
      offset += payload.length
    }
    const entries = block.subarray(BLOCK_HEADER_BYTES)
    block.writeUInt32LE(BLOCK_MAGIC, 0)
    block.writeUInt32LE(additions.length, 4)
    block.writeUInt32LE(crc32(entries, additions.length), 8)
    if (offset > this.#offset) await this.#data.append(Buffer.concat(additions.map(one => one.payload)))
    await this.#keys.append(block)
    this.#offset = offset
    return wordsOf(entries)
  }

  async sync(): Promise<void> {
    await this.#data.sync()
    await this.#keys.sync()
  }

  async close(): Promise<void> {
    await Promise.all([this.#keys.close(), this.#data.close()])
  }
}

function headerOf(owner: Owner): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.write(KEYS_MAGIC, 'latin1')
  header.writeUInt32LE(STORE_VERSION, 8)
  const text = Buffer.from(JSON.stringify(owner))
  if (text.length <= OWNER_BYTES) text.copy(header, 16)
  header.writeUInt32LE(crc32(header.subarray(16)), 12)
  return header
}

/** The entries of a segment, block by block, up to the first that is not whole. */
export function readSegment(path: string, take: (entries: Int32Array, count: number) => void): void {
  const bytes = readFileSync(path)
  checkHeader(path, bytes)
  for (let at = HEADER_BYTES; at + BLOCK_HEADER_BYTES <= bytes.length;) {
    const count = bytes.readUInt32LE(at + 4)
    const end = at + BLOCK_HEADER_BYTES + count * ENTRY_BYTES
    if (bytes.readUInt32LE(at) !== BLOCK_MAGIC || end > bytes.length) return
    const entries = bytes.subarray(at + BLOCK_HEADER_BYTES, end)
    if (bytes.readUInt32LE(at + 8) !== crc32(entries, count)) return
    take(wordsOf(entries), count)
    at = end
  }
}

/** Who writes, or wrote, a segment; null when that was never written down. */
export function ownerOf(path: string): Owner | null {
  const header = Buffer.alloc(HEADER_BYTES)
  const file = openSync(path, 'r')
  try {
    if (readSync(file, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return null
  } finally {
    closeSync(file)
  }
  if (header.readUInt32LE(12) !== crc32(header.subarray(16))) return null
  const text = header.toString('utf8', 16).replace(/\0+$/, '')
  try {
    return JSON.parse(text) as Owner
  } catch {
    return null
  }
}

/** A header that was cut says nothing; one of another version is refused. */
function checkHeader(path: string, bytes: Buffer): void {
  if (bytes.length < HEADER_BYTES || bytes.toString('latin1', 0, 8) !== KEYS_MAGIC) return
  const version = bytes.readUInt32LE(8)
  if (version !== STORE_VERSION && bytes.readUInt32LE(12) === crc32(bytes.subarray(16, HEADER_BYTES)))
    throw otherVersion(path, `version ${version}`)
}

export const otherVersion = (path: string, found: string): MillraceError =>
  new MillraceError(
    'MR_STORE_VERSION',
    `${path} is of ${found}, and this Millrace reads version ${STORE_VERSION}`,
  )

/** Typed arrays begin at multiples of their size, and blocks do not. */
const wordsOf = (entries: Buffer): Int32Array =>
  new Int32Array(
    entries.byteOffset % 4 === 0
      ? entries.buffer.slice(entries.byteOffset, entries.byteOffset + entries.length)
      : Uint8Array.prototype.slice.call(entries).buffer,
  )
