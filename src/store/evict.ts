import { randomBytes } from 'node:crypto'
import { linkSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { hasEnded, thisProcess } from '../storage/owner.ts'
import type { Owner } from '../storage/owner.ts'
import { hexOf } from './digest.ts'
import { openAppender } from './disk.ts'
import { ENTRY_BYTES, KEY_BYTES } from './format.ts'
import type { EntryType } from './format.ts'
import { SegmentWriter, ownerOf } from './segment.ts'
import { Store, segmentNames, segmentsFolder } from './store.ts'

/** More segments than this are merged into one. */
const MANY_SEGMENTS = 64
/** What has to go is a little more than what is over the limit, so that the next run need not do it again. */
const SHARE_KEPT = 0.9
/** Entries that are written at one time. */
const BATCH = 4096
/** An object that no entry needs goes after this many milliseconds: its entry may be on its way. */
const ORPHAN_AGE = 24 * 3600_000
/** A run on another host that has not written for this long has ended; milliseconds. */
const FAR_AGE = 7 * 24 * 3600_000

export interface Evicted {
  /** Bytes before and after. */
  readonly before: number
  readonly after: number
  readonly results: number
}

/**
 * Brings a store below a limit: what was not used for longest goes first. Segments of runs that have ended are merged into
 * one, whole, before the old ones go; so a cut on the way costs nothing. Null when another process is doing it.
 */
export async function evict(folder: string, limit: number): Promise<Evicted | null> {
  const release = takeLock(join(folder, 'merging'))
  if (!release) return null
  try {
    return await evictAlone(folder, limit)
  } finally {
    release()
  }
}

async function evictAlone(folder: string, limit: number): Promise<Evicted> {
  const store = Store.open(folder, { isReadOnly: true })
  try {
    const sizes = new Map<string, number>()
    const orphans: string[] = []
    for await (const { hex, size } of store.objects.all()) sizes.set(hex, size)
    const needs = new Map<string, number>()
    const { table } = store
    let before = [...sizes.values()].reduce((sum, size) => sum + size, 0)
    const places = Array.from({ length: table.size }, (_, place) => place)
    for (const place of places) {
      before += table.at(place).length + ENTRY_BYTES
      for (const object of store.objectsOf(place))
        needs.set(hexOf(object), (needs.get(hexOf(object)) ?? 0) + 1)
    }
    let after = before
    const goes = new Set<number>()
    const freed: string[] = []
    if (before > limit) {
      places.sort((a, b) => table.lastUse(a) - table.lastUse(b))
      for (const place of places) {
        if (after <= limit * SHARE_KEPT) break
        goes.add(place)
        after -= table.at(place).length + ENTRY_BYTES
        for (const object of store.objectsOf(place)) {
          const hex = hexOf(object)
          const left = (needs.get(hex) ?? 1) - 1
          needs.set(hex, left)
          if (left > 0) continue
          after -= sizes.get(hex) ?? 0
          freed.push(hex)
        }
      }
    }
    const ended = segmentNames(folder).filter(name => isOver(folder, name))
    if (goes.size > 0 || ended.length > MANY_SEGMENTS) await merge(store, ended, goes)
    for (const hex of freed) await rm(objectPath(folder, hex), { force: true })
    for await (const { hex, path, changed } of store.objects.all())
      if (!needs.has(hex) && Date.now() - changed > ORPHAN_AGE) orphans.push(path)
    for (const path of orphans) await rm(path, { force: true })
    return { before, after, results: goes.size }
  } finally {
    await store.close()
  }
}

const objectPath = (folder: string, hex: string): string =>
  join(folder, 'objects', hex.slice(0, 2), hex.slice(2))

/** Writes what stays of these segments into a new one. */
async function merge(store: Store, ended: readonly string[], goes: ReadonlySet<number>): Promise<void> {
  const { folder, table, segments } = store
  // Sorted before those that live: what they say last counts.
  const name = `0-${Date.now().toString(36)}-${randomBytes(3).toString('hex')}`
  const writer = await SegmentWriter.create(join(segmentsFolder(folder), name), thisProcess(), openAppender)
  const isEnded = new Set(ended)
  const byTime = new Map<number, number[]>()
  for (let place = 0; place < table.size; place++) {
    if (goes.has(place) || !isEnded.has(segments[table.at(place).segment] ?? '')) continue
    const time = table.lastUse(place)
    const list = byTime.get(time)
    if (list) list.push(place)
    else byTime.set(time, [place])
  }
  for (const [time, places] of byTime) {
    for (let at = 0; at < places.length; at += BATCH) {
      const additions = places.slice(at, at + BATCH).flatMap(place => {
        const { type, objects } = table.at(place)
        const payload = store.payloadAt(place)
        return payload && payload.length >= objects * KEY_BYTES
          ? [{ type: type as EntryType, key: Buffer.from(table.keyAt(place)), payload, objects }]
          : []
      })
      if (additions.length > 0) await writer.append(additions, time)
    }
  }
  await writer.sync()
  await writer.close()
  for (const old of ended) {
    const base = join(segmentsFolder(folder), old)
    await rm(`${base}.keys`, { force: true })
    await rm(`${base}.data`, { force: true })
  }
}

/** The run that wrote it has ended. */
function isOver(folder: string, name: string): boolean {
  const path = join(segmentsFolder(folder), `${name}.keys`)
  try {
    const owner = ownerOf(path)
    if (!owner) return true
    if (hasEnded(owner)) return true
    return owner.host !== thisProcess().host && Date.now() - statSync(path).mtimeMs > FAR_AGE
  } catch {
    return false
  }
}

/** Null when another process that lives has it. */
function takeLock(path: string): (() => void) | null {
  const own = `${path}.${process.pid}-${randomBytes(3).toString('hex')}`
  writeFileSync(own, JSON.stringify(thisProcess()))
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      try {
        linkSync(own, path)
        return () => rmSync(path, { force: true })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      if (!isLeftBehind(path)) return null
      rmSync(path, { force: true })
    }
    return null
  } finally {
    rmSync(own, { force: true })
  }
}

function isLeftBehind(path: string): boolean {
  try {
    return hasEnded(JSON.parse(readFileSync(path, 'utf8')) as Owner)
  } catch {
    return true
  }
}
