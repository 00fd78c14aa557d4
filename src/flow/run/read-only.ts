import { chmod, readdir, stat } from 'node:fs/promises'

const WRITABLE = 0o222

/** Takes away the permission to write to a file, or to the files in a directory; they can still be moved and deleted. */
export async function makeReadOnly(
  path: string,
  stats: { mode: number; isDirectory(): boolean },
): Promise<void> {
  if (!stats.isDirectory()) return chmod(path, stats.mode & 0o7777 & ~WRITABLE)
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    const file = `${entry.parentPath}/${entry.name}`
    await chmod(file, (await stat(file)).mode & 0o7777 & ~WRITABLE)
  }
}
