import { lstat, mkdir, readFile, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { FileThreads } from './file-threads.ts'
import { ALWAYS_WANTED, copyDurably } from './mover.ts'
import { FULL_SPEED } from './pace.ts'
import { PART, TARGET, isOrphan, isUnfinished, removeKept } from './tier-folders.ts'
import type { TargetFacts } from './tier-folders.ts'

export interface Recovered {
  path: string
  /** Where it was found. */
  from: string
  /** Why it was not brought to its path; null if it was. */
  left: string | null
}

interface Found {
  path: string
  folder: string
  version: number
}

/**
 * Brings to their places the results that killed runs left on devices. Of several versions the newest counts; a
 * file that was written since then is not touched. To be interrupted does no harm: what was brought is
 * recognised the next time.
 */
export async function recover(devices: readonly string[]): Promise<Recovered[]> {
  const runs = new Map<string, string[]>()
  for (const device of new Set(devices)) {
    const names = await readdir(device).catch(() => [])
    for (const name of names) {
      if (!name.startsWith('.millrace-kept-')) continue
      const folder = join(device, name)
      if (await isUnfinished(folder))
        await rm(folder, { recursive: true, force: true }).catch(() => undefined)
      // A run has folders on several devices, and they have to be looked at together.
      if (await isOrphan(folder)) runs.set(name, [...(runs.get(name) ?? []), folder])
    }
  }
  const recovered: Recovered[] = []
  const threads = new FileThreads()
  for (const folders of runs.values()) recovered.push(...(await recoverRun(folders, threads)))
  await threads.close()
  return recovered
}

async function recoverRun(folders: readonly string[], threads: FileThreads): Promise<Recovered[]> {
  const all: Found[] = []
  for (const folder of folders) {
    for (const name of await readdir(folder)) {
      const found = await look(join(folder, name))
      if (found) all.push(found)
    }
  }
  // By path the newest comes last.
  const newest = new Map(all.sort((a, b) => a.version - b.version).map(found => [found.path, found]))
  const recovered: Recovered[] = []
  for (const found of newest.values()) recovered.push(await bring(found, threads))
  if (recovered.every(({ left }) => left === null)) {
    // Older ones first: a recovery after an interruption must not take one of them for the newest.
    for (const { folder } of all) await rm(join(folder, TARGET), { force: true })
    for (const folder of folders) await removeKept(folder)
  }
  return recovered
}

/** What lies in one place; null if it is only half there, or not to be brought anywhere. */
async function look(place: string): Promise<Found | null> {
  if (place.endsWith(PART)) return null
  try {
    const { path, version } = JSON.parse(await readFile(join(place, TARGET), 'utf8')) as TargetFacts
    await lstat(join(place, basename(path)))
    return { path, version, folder: place }
  } catch {
    return null
  }
}

async function bring({ path, folder }: Found, threads: FileThreads): Promise<Recovered> {
  const from = join(folder, basename(path))
  const aside = join(dirname(path), `.${basename(path)}.millrace-recovered`)
  try {
    const [kept, there] = [await lstat(from), await lstat(path).catch(() => null)]
    // Copies keep their times, so that an equal time means that it was brought already.
    if (there && there.mtimeMs > kept.mtimeMs + 1) {
      return { path, from, left: 'the file there is newer' }
    }
    if (!there || there.mtimeMs < kept.mtimeMs - 1 || there.size !== kept.size) {
      await mkdir(dirname(path), { recursive: true })
      await rm(aside, { recursive: true, force: true })
      await copyDurably(threads, from, aside, FULL_SPEED, ALWAYS_WANTED)
      if (kept.isDirectory()) await rm(path, { recursive: true, force: true })
      await rename(aside, path)
      await threads.call('syncFolder', dirname(path))
    }
    return { path, from, left: null }
  } catch (error) {
    await rm(aside, { recursive: true, force: true }).catch(() => undefined)
    return { path, from, left: error instanceof Error ? error.message : String(error) }
  }
}
