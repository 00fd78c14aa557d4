import { mkdirSync, statSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/*
 * Folders with those above them. Node can do that itself, but goes on for ever in a folder that says of what is
 * made there that it does not exist, as /proc does; and mostly only the last folder is missing.
 */

/** Another process may remove an empty folder just before something is made in it. That does not happen every time. */
const TRIES = 50

export async function makeFolders(path: string): Promise<void> {
  for (let tries = TRIES; ; tries--) {
    try {
      return await mkdir(path)
    } catch (error) {
      const isUnmade = isMissing(error, path)
      const found = isUnmade ? null : await stat(path).catch(() => null)
      if (found?.isDirectory()) return
      if (found || tries === 0 || !(isUnmade || wasThere(error))) throw error
      if (isUnmade) await makeFolders(dirname(path))
    }
  }
}

export function makeFoldersNow(path: string): void {
  for (let tries = TRIES; ; tries--) {
    try {
      return mkdirSync(path)
    } catch (error) {
      const isUnmade = isMissing(error, path)
      const found = isUnmade ? null : statSync(path, { throwIfNoEntry: false })
      if (found?.isDirectory()) return
      if (found || tries === 0 || !(isUnmade || wasThere(error))) throw error
      if (isUnmade) makeFoldersNow(dirname(path))
    }
  }
}

const isMissing = (error: unknown, path: string): boolean =>
  (error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(path) !== path

const wasThere = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EEXIST'
