import { constants, lstatSync, renameSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { access, chmod, chown, lstat, rename, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { MillraceError } from '../core/errors.ts'
import { specialKind } from '../general/special-file.ts'
import { atHome } from '../core/data/staging-name.ts'
import { copyAttributes } from './attributes.ts'

/** Node says of a folder that is read-only that it does not exist. */
export async function unwritable(path: string, cause: unknown): Promise<never> {
  const { code } = cause as NodeJS.ErrnoException
  if (code === 'MR_PATH') throw cause
  if (code === 'ENOTDIR' || code === 'ENAMETOOLONG' || code === 'ELOOP') throw unusablePath(path, code, cause)
  let folder = dirname(path)
  while (!(await exists(folder))) folder = dirname(folder)
  const reason = await access(folder, constants.W_OK).then(
    () => (cause as Error).message,
    (error: unknown) => (error as NodeJS.ErrnoException).code,
  )
  const why =
    reason === 'EROFS'
      ? 'it is on a read-only file system'
      : reason === 'EACCES'
        ? 'it is not permitted'
        : atHome(String(reason))
  throw new MillraceError('MR_OUTPUT_FOLDER', `${path} cannot be written in ${folder}: ${why}`, { cause })
}

const PATH_TROUBLE: Readonly<Record<string, string>> = {
  ENOTDIR: 'a part of it is a file, not a folder',
  ENAMETOOLONG: 'it is too long',
  ELOOP: 'its links lead in a circle',
}

export const unusablePath = (path: string, code: string, cause?: unknown): MillraceError =>
  new MillraceError('MR_PATH', `${path} cannot be used: ${PATH_TROUBLE[code] ?? code}`, { cause })

/** Bytes of a name that file systems take. */
const LONGEST_NAME = 255

/**
 * Refuses what must not be replaced by a file. A device, a FIFO or a socket is not written through either: what a task
 * writes counts only when it has ended well, and then it is too late to send it there.
 */
export function expectReplaceable(path: string, found: Stats | undefined): void {
  if (Buffer.byteLength(basename(path)) > LONGEST_NAME) throw unusablePath(path, 'ENAMETOOLONG')
  const what = found ? specialKind(found) : null
  if (what === null) return
  throw new MillraceError('MR_PATH', `${path} is ${what}, which a task cannot write as its output`)
}

const umask = process.umask()

/**
 * Puts what was staged in the place of what is there. A file keeps its mode, unless the task has set one, and its owner where
 * we may give it away, and its extended attributes. Other names of it (hard links) keep the older content.
 */
export async function replace(staged: string, path: string, isQuick = false): Promise<void> {
  const before = isQuick
    ? lstatSync(path, { throwIfNoEntry: false })
    : await lstat(path).catch(() => undefined)
  expectReplaceable(path, before)
  if (before && !before.isSymbolicLink()) await keepMode(staged, path, before)
  try {
    if (isQuick) renameSync(staged, path)
    else await rename(staged, path)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EISDIR') throw cause
    // A folder where a file is to be written must not be deleted with all that is in it.
    throw new MillraceError('MR_OUTPUT_FOLDER', `${path} cannot be written: a folder has that name`, {
      hint: 'Move the folder away, or give the file another name. For a folder as output write DIR_OUT, in rules dir().',
      cause,
    })
  }
}

async function keepMode(staged: string, path: string, before: Stats): Promise<void> {
  const made = await lstat(staged)
  if (made.isFile() !== before.isFile() || made.isSymbolicLink()) return
  const usual = (made.isFile() ? 0o666 : 0o777) & ~umask
  const isOwn = made.uid === before.uid && made.gid === before.gid
  if (!isOwn) await chown(staged, before.uid, before.gid).catch(() => undefined)
  // A list of who may do what changes the mode.
  const hasMore = copyAttributes(path, staged)
  const isUsual = (made.mode & 0o7777) === usual
  // To give it away takes the bits that let it run as its owner.
  if (isUsual && (made.mode !== before.mode || hasMore)) await chmod(staged, before.mode & 0o7777)
  else if (!isOwn || hasMore) await chmod(staged, made.mode & 0o7777).catch(() => undefined)
}

/** Bytes of the file that is there, 0 for a folder; null if nothing is. */
export async function bytesAt(path: string): Promise<number | null> {
  try {
    const found = await lstat(path)
    if (found.isFile()) return found.size
    if (!found.isSymbolicLink()) return 0
    const target = await stat(path).catch(() => null)
    return target?.isFile() ? target.size : 0
  } catch {
    return null
  }
}

export async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch {
    return false
  }
}
