import { createHash } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { lstat, open, readdir, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { STAGING } from '../core/data/staging-name.ts'
import { digestLater, digestOf } from './digest.ts'
import type { Digest } from './digest.ts'
import { KEY_BYTES } from './format.ts'

const CHUNK = 4 * 2 ** 20

/** Of what is in a file; the bytes are read in pieces, so that memory stays small. */
export async function digestFile(path: string): Promise<Digest> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    if (size <= CHUNK) {
      const bytes = await file.readFile()
      return bytes.length <= 64 * 1024 ? digestOf(bytes) : await digestLater(bytes)
    }
    const sum = createHash('sha256')
    const buffer = Buffer.allocUnsafeSlow(CHUNK)
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK)
      if (bytesRead === 0) break
      sum.update(buffer.subarray(0, bytesRead))
    }
    return sum.digest().subarray(0, KEY_BYTES)
  } finally {
    await file.close()
  }
}

/** A file in a directory, or a link, or a folder in it. */
export interface TreePart {
  readonly name: string
  readonly type: 'file' | 'folder' | 'link'
  /** Of links: what they say. */
  readonly target?: string
  readonly isExecutable?: boolean
}

/** All that is in a directory, in an order that depends on the names alone. Staging folders are not part of it. */
export async function partsOf(folder: string, within = ''): Promise<TreePart[]> {
  const parts: TreePart[] = []
  const entries = await readdir(join(folder, within), { withFileTypes: true })
  entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    if (entry.name.startsWith(STAGING)) continue
    const name = within === '' ? entry.name : `${within}/${entry.name}`
    if (entry.isDirectory()) {
      parts.push({ name, type: 'folder' })
      for (const inner of await partsOf(folder, name)) parts.push(inner)
    } else if (entry.isSymbolicLink()) {
      parts.push({ name, type: 'link', target: await readlink(join(folder, name)) })
    } else {
      const { mode } = await lstat(join(folder, name))
      parts.push({ name, type: 'file', isExecutable: (mode & 0o111) !== 0 })
    }
  }
  return parts
}

/** What a file or directory looks like, without reading it. A change of content changes it, unless the clock stood still. */
export interface Look {
  readonly size: number
  readonly text: string
  /** The latest change in it, in milliseconds. */
  readonly changed: number
  readonly isDirectory: boolean
  readonly isExecutable: boolean
}

const lineOf = ({ size, mtimeNs, ctimeNs, ino, dev, mode }: BigIntStats): string =>
  `${size} ${mtimeNs} ${ctimeNs} ${ino} ${dev} ${mode}`

/** Null when nothing is there, or something else than a file or a directory. */
export async function lookAt(path: string): Promise<Look | null> {
  const stats = await stat(path, { bigint: true }).catch(() => null)
  if (!stats) return null
  if (stats.isFile()) return lookOf(stats)
  if (!stats.isDirectory()) return null
  const lines: string[] = []
  let changed = 0
  for (const { name, type, target } of await partsOf(path)) {
    const inner = await lstat(join(path, name), { bigint: true })
    // The time of a folder changes with what Millrace puts there for a moment; its names say enough.
    lines.push(`${JSON.stringify(name)} ${type === 'folder' ? 'folder' : `${lineOf(inner)} ${target ?? ''}`}`)
    if (type !== 'folder') changed = Math.max(changed, Number(inner.mtimeMs), Number(inner.ctimeMs))
  }
  const text = digestOf(lines.join('\n')).toString('hex')
  return { size: 0, text: `tree ${text}`, changed, isDirectory: true, isExecutable: false }
}

export function lookOf(stats: BigIntStats): Look {
  return {
    size: Number(stats.size),
    text: lineOf(stats),
    changed: Math.max(Number(stats.mtimeMs), Number(stats.ctimeMs)),
    isDirectory: false,
    isExecutable: (Number(stats.mode) & 0o111) !== 0,
  }
}
