import { constants } from 'node:fs'
import { chmod, copyFile, lstat, mkdir, open, readdir, readlink, symlink, utimes } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Pace } from './pace.ts'

/** Bytes that are copied between two looks at the pace. */
const CHUNK = 2 ** 20

/** Ends a copy whose result is no longer needed. */
export class Abandoned extends Error {}

/** What becomes of a copy that is under way. */
export interface Going {
  isWanted(): boolean
  /** Someone waits for it. */
  isUrgent(): boolean
}

export const ALWAYS_WANTED: Going = { isWanted: () => true, isUrgent: () => false }

/**
 * Copies a file or directory so that it is on the disk when this returns; returns its size. The copy is to be
 * renamed into place then: readers see all of it or nothing.
 */
export async function copyDurably(from: string, to: string, pace: Pace, going: Going): Promise<number> {
  const stats = await lstat(from)
  if (stats.isSymbolicLink()) {
    await symlink(await readlink(from), to)
    return 0
  }
  if (!stats.isDirectory()) {
    if (pace.isFree) await copyWhole(from, to)
    else await copyPaced(from, to, stats, pace, going)
    await utimes(to, stats.atime, stats.mtime)
    return stats.size
  }
  await mkdir(to, { recursive: true })
  let bytes = 0
  for (const name of await readdir(from)) {
    if (!going.isWanted()) throw new Abandoned()
    bytes += await copyDurably(join(from, name), join(to, name), pace, going)
  }
  await chmod(to, stats.mode)
  await utimes(to, stats.atime, stats.mtime)
  await syncFolder(to)
  return bytes
}

async function copyWhole(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE)
  await using(await open(to, 'r'), file => file.sync())
}

async function copyPaced(
  from: string,
  to: string,
  { mode, size }: { mode: number; size: number },
  pace: Pace,
  { isWanted, isUrgent }: Going,
): Promise<void> {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK, size))
  const mayGo = (): boolean => {
    if (!isWanted()) throw new Abandoned()
    return isUrgent()
  }
  await using(await open(from, 'r'), async source =>
    using(await open(to, 'w', mode), async target => {
      let synced = Promise.resolve()
      for (let at = 0; at < size;) {
        await pace.allow(Math.min(CHUNK, size - at), mayGo)
        const { bytesRead } = await source.read(buffer, 0, buffer.length, at)
        if (bytesRead === 0) throw new Error(`${from} became shorter while it was copied`)
        // A device that is almost full takes less than it is given.
        const { bytesWritten } = await target.write(buffer, 0, bytesRead, at)
        at += bytesWritten
        // What is written stays in memory until it has to leave: all at the end would take as long again.
        await synced
        if (at < size) synced = target.datasync()
        synced.catch(() => undefined)
      }
      await synced
      await target.sync()
      await target.chmod(mode)
    }),
  )
}

/** After a rename: the new name is on the disk as well. */
export async function syncFolder(path: string): Promise<void> {
  try {
    await using(await open(path, 'r'), folder => folder.sync())
  } catch {
    // Some file systems cannot sync folders.
  }
}

async function using<T>(file: FileHandle, use: (file: FileHandle) => Promise<T>): Promise<T> {
  try {
    return await use(file)
  } finally {
    await file.close()
  }
}

/** Bytes of a file, or of all files in a directory. */
export async function sizeOf(path: string): Promise<number> {
  const stats = await lstat(path)
  if (!stats.isDirectory()) return stats.size
  let bytes = 0
  for (const name of await readdir(path)) bytes += await sizeOf(join(path, name))
  return bytes
}
