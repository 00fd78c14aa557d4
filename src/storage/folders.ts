import { mkdirSync, statSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/*
 * Folders with those above them. Node can do that itself, but goes on for ever in a folder that says of what is
 * made there that it does not exist, as /proc does; and mostly only the last folder is missing.
 */

export async function makeFolders(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    if (isMissing(error, path)) {
      await makeFolders(dirname(path))
      await mkdir(path).catch((again: unknown) => expectFolder(path, again))
    } else await expectFolder(path, error)
  }
}

export function makeFoldersNow(path: string): void {
  try {
    mkdirSync(path)
  } catch (error) {
    if (isMissing(error, path)) {
      makeFoldersNow(dirname(path))
      mkdirSync(path)
    } else if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}

const isMissing = (error: unknown, path: string): boolean =>
  (error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(path) !== path

/** Somebody else may have made it meanwhile. */
async function expectFolder(path: string, error: unknown): Promise<void> {
  const found = await stat(path).catch(() => null)
  if (!found?.isDirectory()) throw error
}
