import { close, open, read } from 'node:fs'
import { open as openFile, readFile, readdir, readlink, stat } from 'node:fs/promises'
import { hash, webcrypto } from 'node:crypto'
import { hashText } from '../../general/hash.ts'
import { isOwnName } from './file-table.ts'
import type { Look } from './file-table.ts'
import { SMALL } from './stamp-thread.ts'
import { expectText } from '../language/readable-name.ts'

/** Larger files are known by what they look like: reading them again costs more than it saves; bytes. */
export const STAMP_LIMIT = 32 * 2 ** 20

export const CHUNK = 4 * 2 ** 20

/** SHA-256 of a file, computed off this thread, in pieces so that memory stays small. Hex. */
export async function digestFile(path: string, size = Infinity): Promise<string> {
  // Small files cost less here than the way to another thread and back.
  if (size <= SMALL) return hash('sha256', await readSmall(path, size))
  const file = await openFile(path, 'r')
  try {
    const { size } = await file.stat()
    const buffer = Buffer.allocUnsafeSlow(Math.min(size + 1, CHUNK))
    const parts: Buffer[] = []
    for (;;) {
      let filled = 0
      while (filled < buffer.length) {
        const { bytesRead } = await file.read(buffer, filled, buffer.length - filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      if (filled > 0 || parts.length === 0) parts.push(await digest(buffer.subarray(0, filled)))
      if (filled < buffer.length) break
    }
    const whole = parts.length === 1 ? (parts[0] as Buffer) : await digest(Buffer.concat(parts))
    return whole.toString('hex')
  } finally {
    await file.close()
  }
}

/** A file whose size is known: without asking for that once more, and in as few steps as there can be. */
function readSmall(path: string, size: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    open(path, 'r', (failure, file) => {
      if (failure) return reject(failure)
      const buffer = Buffer.allocUnsafe(size + 1)
      read(file, buffer, 0, size + 1, 0, (error, length) => {
        // Nothing waits for that.
        close(file, () => undefined)
        if (error) reject(error)
        else if (length === size) resolve(buffer.subarray(0, size))
        // It has changed meanwhile.
        else readFile(path).then(resolve, reject)
      })
    })
  })
}

const digest = async (bytes: Uint8Array): Promise<Buffer> =>
  Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>))

/** SHA-256 of a file, or of a directory with names and contents of all that is in it. */
export async function digestPath(path: string): Promise<string> {
  const stats = await stat(path)
  if (stats.isFile()) return digestFile(path)
  if (!stats.isDirectory()) return 'special'
  const lines: string[] = []
  const walk = async (folder: string, name: string): Promise<void> => {
    const entries = (await readdir(folder, { withFileTypes: true })).sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )
    for (const entry of entries) {
      if (isOwnName(entry.name)) continue
      expectText(folder, entry.name)
      const inner = `${folder}/${entry.name}`
      const shown = `${name}/${entry.name}`
      if (entry.isDirectory()) {
        lines.push(`${JSON.stringify(shown)}/`)
        await walk(inner, shown)
      } else if (entry.isSymbolicLink()) {
        lines.push(`${JSON.stringify(shown)} -> ${JSON.stringify(await readlink(inner))}`)
      } else lines.push(`${JSON.stringify(shown)} ${entry.isFile() ? await digestFile(inner) : 'special'}`)
    }
  }
  await walk(path, '')
  return (await digest(Buffer.from(lines.join('\n')))).toString('hex')
}

/** The number that stands for content with this digest. */
export const stampOf = (digestHex: string): number =>
  Number.parseInt(digestHex.slice(0, 12), 16) * 32 + (Number.parseInt(digestHex.slice(12, 14), 16) & 31) || 1

/** Of files that are too large to be read again. */
const stampByLook = ({ size, mtime }: Look): number => hashText(`${size}@${mtime}`, 7)

/** When the file was stamped the last time, and how. */
export interface Stamped extends Look {
  readonly stamp: number
}

/**
 * A large file of the same size and time may have other content, because a time can be set. Setting it changes
 * its ctime or its inode, which cannot be set: then it counts as changed.
 */
export function stampOfLarge(look: Look, before: Stamped | null): number {
  const { size, mtime, ctime, ino } = look
  if (!before || before.size !== size || before.mtime !== mtime) return stampByLook(look)
  // Renaming it into place changed the ctime, and it was not looked at since.
  const isUnknown = before.ctime === 0 && before.ino === ino
  if (isUnknown || (before.ctime === ctime && before.ino === ino)) return before.stamp
  return hashText(`${size}@${mtime}@${ctime}@${ino}`, 7)
}

export async function takeStamp(path: string, look: Look, before: Stamped | null = null): Promise<number> {
  if (look.size > STAMP_LIMIT) return stampOfLarge(look, before)
  if (look.isSpecial) return 1
  return stampOf(await (look.isFolder ? digestPath(path) : digestFile(path, look.size)))
}

/**
 * A change within the same tick of the clock leaves the time as it is. File systems that count in whole seconds
 * have long ticks.
 */
export const isRacy = ({ mtime, ctime }: Look, now: number): boolean => isNow(mtime, now) || isNow(ctime, now)

function isNow(time: number, now: number): boolean {
  const tick = Number.isInteger(time / 1000) ? 2000 : 10
  return Math.abs(now - time) < tick
}
