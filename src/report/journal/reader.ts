import { open, type FileHandle } from 'node:fs/promises'
import { MillraceError } from '../../core/errors.ts'
import type { RunEvent } from '../../core/events.ts'
import { decodeBlock } from './decode.ts'
import {
  BLOCK_HEADER_BYTES,
  HEADER_BYTES,
  MAGIC,
  MAX_BLOCK_BYTES,
  VERSION,
  blockCrc,
  journalHeader,
} from './format.ts'

export interface JournalContent {
  events: RunEvent[]
  /** True when the last event is the end of the run. */
  complete: boolean
  /** Bytes at the end that could not be read. */
  dropped: number
}

/**
 * The events of a journal in the order in which they were observed. A tail that is cut or damaged is left
 * out, and `unread` is called with its size in bytes. Reads block by block: the memory it takes does not depend on
 * the size of the journal.
 */
export async function* readJournal(path: string, unread?: Unread): AsyncGenerator<RunEvent> {
  for await (const events of readJournalBlocks(path, unread)) yield* events
}

type Unread = (bytes: number) => void

/** Like `readJournal`, a block at a time: several times as fast for millions of events. */
export async function* readJournalBlocks(path: string, unread?: Unread): AsyncGenerator<RunEvent[]> {
  const source = await openJournal(path, 1024 * 1024)
  try {
    let offset = HEADER_BYTES
    for (;;) {
      const payload = await readPayload(source, offset)
      const events = payload && decodePayload(payload)
      if (!payload || !events) {
        if (offset < source.size) unread?.(source.size - offset)
        return
      }
      yield events
      offset += BLOCK_HEADER_BYTES + payload.length
    }
  } finally {
    await source.file.close()
  }
}

/**
 * The first and the last event, for lists of runs. Steps from block to block without reading what is
 * between, so it is quick for long journals; damage between the two goes unseen.
 */
export async function readJournalEnds(
  path: string,
): Promise<{ first: RunEvent | null; last: RunEvent | null }> {
  const source = await openJournal(path, 64 * 1024)
  try {
    const latest: number[] = []
    let offset = HEADER_BYTES
    for (;;) {
      const size = await readLength(source, offset)
      if (size === null) break
      latest.push(offset)
      if (latest.length > 16) latest.shift()
      offset += BLOCK_HEADER_BYTES + size
    }
    const eventsAt = async (place: number): Promise<RunEvent[] | null> => {
      const payload = await readPayload(source, place)
      return payload && decodePayload(payload)
    }
    const first = (await eventsAt(HEADER_BYTES))?.[0] ?? null
    // After damage the lengths lead nowhere; the last block that can be read is then near the end.
    for (const place of latest.toReversed()) {
      const last = (await eventsAt(place))?.at(-1)
      if (last) return { first, last }
    }
    return { first, last: first }
  } finally {
    await source.file.close()
  }
}

export function readJournalBytes(bytes: Uint8Array): JournalContent {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  checkHeader(content.subarray(0, HEADER_BYTES), 'this')
  const events: RunEvent[] = []
  let offset = Math.min(HEADER_BYTES, content.length)
  while (offset + BLOCK_HEADER_BYTES <= content.length) {
    const length = content.readUInt32LE(offset)
    const from = offset + BLOCK_HEADER_BYTES
    if (!isLength(length, content.length - from)) break
    const payload = content.subarray(from, from + length)
    const decoded = blockCrc(payload) === content.readUInt32LE(offset + 4) ? decodePayload(payload) : null
    if (decoded === null) break
    for (const event of decoded) events.push(event)
    offset = from + length
  }
  return { events, complete: events.at(-1)?.type === 'run-ended', dropped: content.length - offset }
}

/** A window of the file is kept, because most blocks and all their headers are small. */
export interface JournalSource {
  file: FileHandle
  size: number
  windowBytes: number
  window: Buffer
  windowAt: number
}

export async function openJournal(path: string, windowBytes: number): Promise<JournalSource> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (cause) {
    throw new MillraceError('MR_JOURNAL', `the journal ${path} cannot be opened`, { cause })
  }
  try {
    const { size } = await file.stat()
    const source = { file, size, windowBytes, window: Buffer.alloc(0), windowAt: 0 }
    checkHeader(await readBytes(source, 0, Math.min(HEADER_BYTES, source.size)), path)
    return source
  } catch (error) {
    await file.close()
    throw error
  }
}

async function readBytes(source: JournalSource, from: number, size: number): Promise<Buffer> {
  const { window, windowAt } = source
  if (from < windowAt || from + size > windowAt + window.length) {
    const left = Math.max(0, source.size - from)
    const fresh = Buffer.allocUnsafe(Math.min(Math.max(size, source.windowBytes), left))
    let filled = 0
    while (filled < fresh.length) {
      const { bytesRead } = await source.file.read(fresh, filled, fresh.length - filled, from + filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    source.window = fresh.subarray(0, filled)
    source.windowAt = from
  }
  return source.window.subarray(from - source.windowAt, from - source.windowAt + size)
}

async function readLength(source: JournalSource, offset: number): Promise<number | null> {
  const header = await readBytes(source, offset, BLOCK_HEADER_BYTES)
  if (header.length < BLOCK_HEADER_BYTES) return null
  const length = header.readUInt32LE(0)
  return isLength(length, source.size - offset - BLOCK_HEADER_BYTES) ? length : null
}

export async function readPayload(source: JournalSource, offset: number): Promise<Buffer | null> {
  const length = await readLength(source, offset)
  if (length === null) return null
  const block = await readBytes(source, offset, BLOCK_HEADER_BYTES + length)
  const payload = block.subarray(BLOCK_HEADER_BYTES)
  return payload.length === length && blockCrc(payload) === block.readUInt32LE(4) ? payload : null
}

function isLength(length: number, left: number): boolean {
  return length > 0 && length <= left && length <= MAX_BLOCK_BYTES
}

export function decodePayload(payload: Buffer): RunEvent[] | null {
  try {
    return decodeBlock(payload)
  } catch {
    return null
  }
}

/** A cut inside the header leaves a journal without events; any other difference is a different file. */
function checkHeader(found: Buffer, path: string): void {
  const wanted = journalHeader()
  if (found.equals(wanted.subarray(0, found.length))) return
  if (found.length === HEADER_BYTES && found.toString('latin1', 0, MAGIC.length) === MAGIC) {
    const version = found.readUInt32LE(MAGIC.length)
    throw new MillraceError('MR_JOURNAL', `${path} is a journal of version ${version}, not ${VERSION}`, {
      hint: 'Read it with the version of Millrace that wrote it.',
    })
  }
  throw new MillraceError('MR_JOURNAL', `${path} is not a journal`)
}
