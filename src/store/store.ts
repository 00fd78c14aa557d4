import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { MillraceError } from '../core/errors.ts'
import { thisProcess } from '../storage/owner.ts'
import { PieceReader, openAppender, syncFolder } from './disk.ts'
import type { OpenAppender } from './disk.ts'
import type { Digest } from './digest.ts'
import { sameDigest } from './digest.ts'
import { ENTRY, ENTRY_BYTES, ENTRY_WORDS, FORMAT_TEXT, KEY_BYTES, STORE_VERSION, WORD } from './format.ts'
import type { EntryType } from './format.ts'
import { Objects } from './objects.ts'
import { SegmentWriter, otherVersion, payloadless, readSegment } from './segment.ts'
import type { Addition } from './segment.ts'
import { Table } from './table.ts'
import { placesIn, readUses, usesOf } from './uses.ts'

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
  readonly #segments: Segment[] = []
  readonly #name: string
  readonly #open: OpenAppender
  readonly #now: () => number
  /** Not written yet, or being written. */
  #waiting: Addition[] = []
  readonly #fresh = new Map<number, Addition>()
  #waitingBytes = 0
  /** Places of results that this run has used, which is not written yet. */
  #used: number[] = []
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
      const base = join(segmentsFolder(this.folder), name)
      const segment = newSegment(name, base)
      this.#segments.push(segment)
      try {
        readSegment(`${base}.keys`, (entries, count) => this.#add(segment, entries, count))
      } catch (error) {
        // Another run may have merged it into a new one meanwhile.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
    }
    for (const { places, time } of this.#allUses()) for (const place of places) this.table.touch(place, time)
  }

  /** Takes in entries of a segment, which follow those that it has. */
  #add(segment: Segment, entries: Int32Array, count: number): void {
    const number = this.#segments.indexOf(segment)
    const places = new Int32Array(count)
    for (let i = 0; i < count; i++) {
      const from = i * ENTRY_WORDS
      if ((entries[from + WORD.type] as number) >>> 16 === ENTRY.uses) {
        segment.uses.push(Int32Array.from(entries.subarray(from, from + ENTRY_WORDS)))
        places[i] = -1
      } else places[i] = this.table.add(entries, from, number, segment.count + i)
    }
    segment.places.push(places)
    segment.count += count
  }

  /** What runs have used, as far as it is here; of one segment, or of all. */
  *#allUses(by: readonly Segment[] = this.#segments): Generator<{ places: Iterable<number>; time: number }> {
    const byName = new Map(this.#segments.map(segment => [segment.name, segment]))
    for (const { uses, data } of by) {
      for (const entry of uses) {
        const length = (entry[WORD.length] as number) >>> 0
        const offset =
          ((entry[WORD.offset] as number) >>> 0) + ((entry[WORD.type] as number) & 0xffff) * 2 ** 32
        const payload = readOrNull(data, offset, length)
        const found =
          payload && crc32(payload) === (entry[WORD.crc] as number) >>> 0 ? readUses(payload) : null
        const of = found && byName.get(found.of)
        if (found && of)
          yield { places: placesIn(found, of.places), time: (entry[WORD.time] as number) >>> 0 }
      }
    }
  }

  /** The keys of results that the run which wrote this segment has used. */
  *usedBy(name: string): Generator<Digest> {
    const by = this.#segments.filter(segment => segment.name === name)
    for (const { places } of this.#allUses(by)) for (const place of places) yield this.table.keyAt(place)
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
    return this.#own >= 0 || this.#waiting.length > 0 || this.#used.length > 0
  }

  has(type: EntryType, key: Digest): boolean {
    if (this.#freshOf(key)?.type === type) return true
    const place = this.table.find(key)
    return place >= 0 && this.table.typeAt(place) === type
  }

  #freshOf(key: Digest): Addition | undefined {
    const fresh = this.#fresh.size > 0 ? this.#fresh.get(numberOf(key)) : undefined
    return fresh && sameDigest(fresh.key, key) ? fresh : undefined
  }

  /** The payload behind the digests of its objects; null when there is none, or it is damaged. */
  find(type: EntryType, key: Digest): Buffer | null {
    const fresh = this.#freshOf(key)
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
    const found = this.#segments[segment]
    return found ? readOrNull(found.data, offset, length) : null
  }

  /** Keeps it in memory; `flush` writes it. */
  put(type: EntryType, key: Digest, payload: Uint8Array, objects: readonly Digest[] = []): void {
    if (this.isReadOnly || this.broken) return
    const whole = objects.length > 0 ? Buffer.concat([...objects, payload]) : payload
    const addition = { type, key, payload: whole, objects: objects.length }
    this.#waiting.push(addition)
    this.#fresh.set(numberOf(key), addition)
    this.#waitingBytes += whole.length
  }

  /** A run has used it: it counts as new when old ones have to go. */
  used(key: Digest): void {
    if (this.isReadOnly || this.broken) return
    const place = this.table.find(key)
    if (place >= 0) this.#used.push(place)
    else this.#waiting.push(payloadless(ENTRY.used, key))
  }

  /** Writes what was put so far; `isSynced`: and waits until it is on the disk. */
  flush(isSynced = false): Promise<void> {
    const additions = this.#waiting
    const used = this.#used
    this.#waiting = []
    this.#used = []
    this.#waitingBytes = 0
    const write = async (): Promise<void> => {
      if (this.broken) return
      try {
        const isFirst = this.#writer === null
        if (used.length > 0) additions.push(...usesOf(used, this.table, this.segments))
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
    this.#segments.push(newSegment(this.#name, base))
    return writer
  }

  #take(additions: readonly Addition[], entries: Int32Array): void {
    this.#add(this.#segments[this.#own] as Segment, entries, additions.length)
    for (const addition of additions) {
      if (addition.type === ENTRY.used || addition.type === ENTRY.uses) continue
      const number = numberOf(addition.key)
      if (this.#fresh.get(number) === addition) this.#fresh.delete(number)
    }
  }

  async close(): Promise<void> {
    await this.flush(true)
    const writer = await this.#writer?.catch(() => null)
    await writer?.close()
    for (const { data } of this.#segments) data.close()
  }
}

/** 53 bits of a key: a number is made and found faster than a text. */
const numberOf = (key: Digest): number => key.readUInt32LE(0) + (key.readUInt32LE(4) >>> 11) * 2 ** 32

/** The files of one run. */
interface Segment {
  readonly name: string
  readonly data: PieceReader
  /** Places of its entries in the table, block by block. */
  readonly places: Int32Array[]
  count: number
  /** Its entries of that type, which are in no table. */
  readonly uses: Int32Array[]
}

const newSegment = (name: string, base: string): Segment => ({
  name,
  data: new PieceReader(`${base}.data`),
  places: [],
  count: 0,
  uses: [],
})

function readOrNull(data: PieceReader, offset: number, length: number): Buffer | null {
  try {
    return data.read(offset, length)
  } catch {
    return null
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
