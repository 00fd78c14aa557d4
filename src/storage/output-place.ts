import { constants } from 'node:fs'
import { access, lstat, rename, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MillraceError } from '../core/errors.ts'

/** Node says of a folder that is read-only that it does not exist. */
export async function unwritable(path: string, cause: unknown): Promise<never> {
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
        : reason
  throw new MillraceError('MR_OUTPUT_FOLDER', `${path} cannot be written in ${folder}: ${why}`, { cause })
}

/** Nobody asked for a folder to be deleted, with all that is in it, where a file is to be written. */
export async function renameTo(staged: string, path: string): Promise<void> {
  await rename(staged, path).catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code !== 'EISDIR') throw cause
    throw new MillraceError('MR_OUTPUT_FOLDER', `${path} cannot be written: a folder has that name`, {
      hint: 'Move the folder away, or give the file another name. For a folder as output write DIR_OUT, in rules dir().',
      cause,
    })
  })
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
