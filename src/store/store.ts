import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { MillraceError } from '../core/errors.ts'
import { thisProcess } from '../storage/owner.ts'
import { PieceReader, openAppender, syncFolder } from './disk.ts'
import type { OpenAppender } from './disk.ts'
import type { Digest } from './digest.ts'
import { hexOf } from './digest.ts'
import { ENTRY, ENTRY_BYTES, ENTRY_WORDS, FORMAT_TEXT, KEY_BYTES, STORE_VERSION } from './format.ts'
import type { EntryType } from './format.ts'
import { Objects } from './objects.ts'
import { SegmentWriter, otherVersion, payloadless, readSegment } from './segment.ts'
import type { Addition } from './segment.ts'
import { Table } from './table.ts'

export interface StoreOptions {
  /** Nothing is written. @default false */
  readonly isReadOnly?: boolean
  /** The name of the files that are written. @default made up */
  readonly name?: string
  readonly openAppender?: OpenAppender
  readonly now?: () => number
}

/** Results by key, kept in a folder that runs share. */
export class Store {
  readonly folder: string
  readonly objects: Objects
  readonly isReadOnly: boolean
  readonly table = new Table()
  readonly #segments: { readonly name: string; readonly data: PieceReader }[] = []
  readonly #name: string
  readonly #open: OpenAppender
  readonly #now: () => number
  /** Not written yet, or being written. */
  #waiting: Addition[] = []
  readonly #fresh = new Map<string, Addition>()
  #waitingBytes = 0
  #writer: Promise<SegmentWriter> | null = null
  #writing: Promise<void> = Promise.resolve()
  #own = -1
  /** The names of its files are on the disk. */
  #isNamed = false
  /** The first error of a write: from then on nothing is kept. */
  broken: Error | null = null

  private constructor(folder: string, options: StoreOptions) {
    this.folder = folder
    this.isReadOnly = options.isReadOnly ?? false
    this.objects = new Objects(folder, this.isReadOnly)
    this.#name = options.name ?? `${Date.now().toString(36)}-${process.pid.toString(36)}`
    this.#open = options.openAppender ?? openAppender
    this.#now = options.now ?? Date.now
  }

  /** Reads what is there; throws where that is of another version. */
  static open(folder: string, options: StoreOptions = {}): Store {
    const store = new Store(folder, options)
    expectFormat(folder)
    store.#load()
    return store
  }

  #load(): void {
    const names = segmentNames(this.folder)
    // All at once: each time that it grows, the table is made anew.
    this.table.reserve(names.reduce((sum, name) => sum + mostEntries(this.folder, name), 0))
    for (const name of names) {
      const number = this.#segments.length
      const base = join(segmentsFolder(this.folder), name)
      try {
        readSegment(`${base}.keys`, (entries, count) => {
          for (let i = 0; i < count; i++) this.table.add(entries, i * ENTRY_WORDS, number)
        })
      } catch (error) {
        // Another run may have merged it into a new one meanwhile.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
      this.#segments.push({ name, data: new PieceReader(`${base}.data`) })
    }
  }

  /** Names of the runs that wrote, oldest first. */
  get segments(): string[] {
    return this.#segments.map(({ name }) => name)
  }

  /** How many bytes of small results it has. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /** Something of this run is in it, or will be. */
  get isWritten(): boolean {
    return this.#own >= 0 || this.#waiting.length > 0
  }

  has(type: EntryType, key: Digest): boolean {
    if (this.#fresh.size > 0 && this.#fresh.get(hexOf(key))?.type === type) return true
    const place = this.table.find(key)
    return place >= 0 && this.table.at(place).type === type
  }

  /** The payload behind the digests of its objects; null when there is none, or it is damaged. */
  find(type: EntryType, key: Digest): Buffer | null {
    const fresh = this.#fresh.size > 0 ? this.#fresh.get(hexOf(key)) : undefined
    if (fresh)
      return fresh.type === type ? Buffer.from(fresh.payload).subarray(fresh.objects * KEY_BYTES) : null
    const place = this.table.find(key)
    if (place < 0) return null
    const entry = this.table.at(place)
    if (entry.type !== type) return null
    const payload = this.#read(entry.segment, entry.offset, entry.length)
    if (!payload || crc32(payload) !== entry.crc) return null
    return payload.subarray(entry.objects * KEY_BYTES)
  }

  /** The objects that an entry needs. */
  objectsOf(place: number): Digest[] {
    const { segment, offset, objects } = this.table.at(place)
    const bytes = objects > 0 ? this.#read(segment, offset, objects * KEY_BYTES) : null
    return bytes
      ? Array.from({ length: objects }, (_, i) => bytes.subarray(i * KEY_BYTES, (i + 1) * KEY_BYTES))
      : []
  }

  /** The whole payload of an entry, for who merges segments. */
  payloadAt(place: number): Buffer | null {
    const { segment, offset, length, crc } = this.table.at(place)
    const payload = this.#read(segment, offset, length)
    return payload && crc32(payload) === crc ? payload : null
  }

  #read(segment: number, offset: number, length: number): Buffer | null {
    try {
      return this.#segments[segment]?.data.read(offset, length) ?? null
    } catch {
      return null
    }
  }

  /** Keeps it in memory; `flush` writes it. */
  put(type: EntryType, key: Digest, payload: Uint8Array, objects: readonly Digest[] = []): void {
    if (this.isReadOnly || this.broken) return
    const whole = objects.length > 0 ? Buffer.concat([...objects, payload]) : payload
    const addition = { type, key, payload: whole, objects: objects.length }
    this.#waiting.push(addition)
    this.#fresh.set(hexOf(key), addition)
    this.#waitingBytes += whole.length
  }

  /** A run has used it: it counts as new when old ones have to go. */
  used(key: Digest): void {
    if (this.isReadOnly || this.broken) return
    this.#waiting.push(payloadless(ENTRY.used, key))
  }

  /** Writes what was put so far; `isSynced`: and waits until it is on the disk. */
  flush(isSynced = false): Promise<void> {
    const additions = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    const write = async (): Promise<void> => {
      if (this.broken) return
      try {
        const isFirst = this.#writer === null
        if (additions.length === 0 && isFirst) return
        const writer = await (this.#writer ??= this.#create())
        if (additions.length > 0)
          this.#take(additions, await writer.append(additions, Math.floor(this.#now() / 1000)))
        if (!isSynced) return
        await this.objects.sync()
        await writer.sync()
        if (!this.#isNamed) await syncFolder(segmentsFolder(this.folder))
        this.#isNamed = true
      } catch (error) {
        this.broken = error as Error
      }
    }
    return (this.#writing = this.#writing.then(write))
  }

  async #create(): Promise<SegmentWriter> {
    makeStore(this.folder)
    const base = join(segmentsFolder(this.folder), this.#name)
    const writer = await SegmentWriter.create(base, thisProcess(), this.#open)
    this.#own = this.#segments.length
    this.#segments.push({ name: this.#name, data: new PieceReader(`${base}.data`) })
    return writer
  }

  #take(additions: readonly Addition[], entries: Int32Array): void {
    for (const [i, addition] of additions.entries()) {
      this.table.add(entries, i * ENTRY_WORDS, this.#own)
      if (addition.type === ENTRY.used) continue
      const hex = hexOf(addition.key)
      if (this.#fresh.get(hex) === addition) this.#fresh.delete(hex)
    }
  }

  async close(): Promise<void> {
    await this.flush(true)
    const writer = await this.#writer?.catch(() => null)
    await writer?.close()
    for (const { data } of this.#segments) data.close()
  }
}

export const segmentsFolder = (folder: string): string => join(folder, 'segments')

function mostEntries(folder: string, name: string): number {
  const stats = statSync(join(segmentsFolder(folder), `${name}.keys`), { throwIfNoEntry: false })
  return Math.ceil((stats?.size ?? 0) / ENTRY_BYTES)
}

/** In the order in which they were begun, which their names begin with. */
export function segmentNames(folder: string): string[] {
  try {
    return readdirSync(segmentsFolder(folder))
      .filter(name => name.endsWith('.keys'))
      .map(name => name.slice(0, -'.keys'.length))
      .sort()
  } catch {
    return []
  }
}

/** Throws when there is a store of another version, or something else. */
function expectFormat(folder: string): void {
  let text: string
  try {
    text = readFileSync(join(folder, 'format'), 'utf8')
  } catch {
    expectNoCache(folder)
    return
  }
  // A power cut may have left it empty.
  if (text === FORMAT_TEXT || text.replaceAll('\0', '') === '') return
  const version = /^millrace store (\d+)/.exec(text)?.[1]
  throw otherVersion(folder, version === undefined ? 'an unknown kind' : `version ${version}`)
}

/** Workflows once had a cache of their own: a folder for each entry, below folders with names of two digits. */
function expectNoCache(folder: string): void {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch {
    return
  }
  if (names.some(name => /^[0-9a-f]{2}$/.test(name)))
    throw otherVersion(folder, 'the kind that `make --cache` wrote before version 1')
}

function makeStore(folder: string): void {
  try {
    mkdirSync(segmentsFolder(folder), { recursive: true })
    mkdirSync(join(folder, 'objects'), { recursive: true })
    if (!existsSync(join(folder, 'format'))) writeFileSync(join(folder, 'format'), FORMAT_TEXT)
  } catch (cause) {
    const { message } = cause as Error
    throw new MillraceError('MR_STORE', `${folder} cannot be written: ${message}`, { cause })
  }
}

export { STORE_VERSION }
