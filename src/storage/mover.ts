import { constants } from 'node:fs'
import { chmod, copyFile, lstat, mkdir, open, readdir, readlink, symlink, utimes } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'

/** Bytes that are copied between two looks at the pace. */
const CHUNK = 2 ** 20
/** How often someone who pauses looks whether it may go on, and the longest nap for a slow pace; milliseconds. */
const NAP = 25

/** Bytes per second that may be used now; 0 to pause, infinite to go at full speed. */
export type Pace = () => number

/** Thrown out of a copy whose result nobody wants any more. */
export class Abandoned extends Error {}

/**
 * Copies a file or directory so that it is on the disk when this returns; returns its size. The copy is to be
 * renamed into place then: whoever looks at the place sees all of it or nothing.
 */
export async function copyDurably(
  from: string,
  to: string,
  pace: Pace,
  wanted: () => boolean,
): Promise<number> {
  const stats = await lstat(from)
  if (stats.isSymbolicLink()) {
    await symlink(await readlink(from), to)
    return 0
  }
  if (!stats.isDirectory()) {
    if (pace() === Infinity) await copyWhole(from, to)
    else await copyPaced(from, to, stats.mode, pace, wanted)
    await utimes(to, stats.atime, stats.mtime)
    return stats.size
  }
  await mkdir(to, { recursive: true })
  let bytes = 0
  for (const name of await readdir(from)) {
    if (!wanted()) throw new Abandoned()
    bytes += await copyDurably(join(from, name), join(to, name), pace, wanted)
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
  mode: number,
  pace: Pace,
  wanted: () => boolean,
): Promise<void> {
  const buffer = Buffer.allocUnsafe(CHUNK)
  await using(await open(from, 'r'), async source =>
    using(await open(to, 'w', mode), async target => {
      let due = performance.now()
      for (let at = 0; ;) {
        due = await waitFor(pace, due, wanted)
        const { bytesRead } = await source.read(buffer, 0, CHUNK, at)
        if (bytesRead === 0) break
        await target.write(buffer, 0, bytesRead, at)
        at += bytesRead
        due += (bytesRead / pace()) * 1000
      }
      await target.sync()
      await target.chmod(mode)
    }),
  )
}

/** Waits until the next chunk is due, however the pace changes meanwhile; returns when it was. */
async function waitFor(pace: Pace, due: number, wanted: () => boolean): Promise<number> {
  for (;;) {
    if (!wanted()) throw new Abandoned()
    const now = performance.now()
    if (pace() > 0 && now >= due) return now - due > NAP ? now : due
    if (pace() > 0 && !Number.isFinite(due)) due = now
    await new Promise(resolve => setTimeout(resolve, pace() > 0 ? Math.min(NAP, due - now) : NAP))
  }
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
