import { open, stat } from 'node:fs/promises'

const CHUNK = 1024 * 1024

/** Whether two files have the same bytes. Directories are never said to be the same. */
export async function sameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([stat(one), stat(other)])
  if (!a.isFile() || !b.isFile() || a.size !== b.size) return false
  const files = [await open(one), await open(other)] as const
  try {
    const buffers = [Buffer.allocUnsafe(CHUNK), Buffer.allocUnsafe(CHUNK)] as const
    for (let at = 0; at < a.size; at += CHUNK) {
      const [{ bytesRead: length }, other] = await Promise.all([
        files[0].read(buffers[0], 0, CHUNK, at),
        files[1].read(buffers[1], 0, CHUNK, at),
      ])
      if (length === 0 || length !== other.bytesRead) return false
      if (buffers[0].compare(buffers[1], 0, length, 0, length) !== 0) return false
    }
    return true
  } finally {
    await Promise.all(files.map(file => file.close()))
  }
}
