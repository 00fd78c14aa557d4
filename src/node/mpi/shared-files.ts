import {
  accessSync,
  closeSync,
  constants,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder in memory where there is one: what ranks map is there. */
export function sharedFolder(run: string): string {
  let base = tmpdir()
  try {
    accessSync('/dev/shm', constants.W_OK)
    base = '/dev/shm'
  } catch {
    // Files that are mapped work too.
  }
  return mkdtempSync(join(base, `millrace-mpi-${run.slice(0, 40)}-`))
}

/** A new file with these bytes. */
export function writeShared(path: string, bytes: Uint8Array): void {
  const file = openSync(path, 'wx')
  try {
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at, bytes.length - at)
  } finally {
    closeSync(file)
  }
}

export function emptyShared(path: string, size: number): void {
  const file = openSync(path, 'wx')
  ftruncateSync(file, size)
  closeSync(file)
}

/** Reads from the file at `from` into the bytes. */
export function readShared(path: string, from: number, into: Uint8Array): void {
  const file = openSync(path, 'r')
  try {
    for (let at = 0; at < into.length;) {
      const got = readSync(file, into, at, into.length - at, from + at)
      if (got === 0) break
      at += got
    }
  } finally {
    closeSync(file)
  }
}

export function removeShared(paths: readonly string[]): void {
  for (const path of paths) {
    try {
      unlinkSync(path)
    } catch {
      // It went with its folder.
    }
  }
}
