import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CHUNK } from './file-threads.ts'
import type { FileThreads, OpenCopy } from './file-threads.ts'
import type { Pace } from './pace.ts'

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
export async function copyDurably(
  threads: FileThreads,
  from: string,
  to: string,
  pace: Pace,
  going: Going,
): Promise<number> {
  const begun = await threads.call('begin', from, to, pace.isFree)
  if (begun.kind === 'done') return begun.bytes
  if (begun.kind === 'open') {
    const { file, kept } = begun
    let isWhole = false
    try {
      await copyPaced(threads, from, file, pace, going)
      isWhole = true
    } finally {
      await threads.call('finish', file, isWhole ? kept : null)
    }
    return file.size
  }
  let bytes = 0
  for (const name of begun.names) {
    if (!going.isWanted()) throw new Abandoned()
    bytes += await copyDurably(threads, join(from, name), join(to, name), pace, going)
  }
  await threads.call('finishFolder', to, begun.kept)
  return bytes
}

/** No thread is held while the copy waits for its pace. */
async function copyPaced(
  threads: FileThreads,
  from: string,
  file: OpenCopy,
  pace: Pace,
  { isWanted, isUrgent }: Going,
): Promise<void> {
  const mayGo = (): boolean => {
    if (!isWanted()) throw new Abandoned()
    return isUrgent()
  }
  const { size } = file
  let synced = Promise.resolve()
  try {
    for (let at = 0; at < size;) {
      await pace.allow(Math.min(CHUNK, size - at), mayGo)
      const written = await threads.call('chunk', file, at)
      if (written === 0) throw new Error(`${from} became shorter while it was copied`)
      at += written
      // What is written stays in memory until it has to leave: all at the end would take as long again.
      await synced
      if (at < size) synced = threads.call('sync', file)
      synced.catch(() => undefined)
    }
  } finally {
    // The files are closed after this.
    await synced
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
