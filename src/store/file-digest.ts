import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { lstat, open, readdir, readlink, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { STAGING } from '../core/data/staging-name.ts'
import { digestLater, digestOf, hexOf } from './digest.ts'
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
  /** Of links that lead out of the directory: the digest of what is there, in hex. */
  readonly behind?: string
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

/** More than this many files behind the links of a directory are not looked through. */
const MOST_BEHIND = 10_000

/** What is found on the way through links, so that each is seen once, and not too many. */
class Walk {
  readonly seen = new Set<string>()
  count = 0

  /** The place that a link leads to, if that is neither in the directory nor known already. The link need not be there yet. */
  async behind(folder: string, name: string, text: string): Promise<string | null> {
    const target = await realpath(resolve(folder, dirname(name), text)).catch(() => null)
    const root = await realpath(folder).catch(() => folder)
    if (target === null || target === root || target.startsWith(root + sep) || this.seen.has(target))
      return null
    this.seen.add(target)
    return target
  }

  take(): void {
    if (++this.count > MOST_BEHIND) throw new Error(`links lead to more than ${MOST_BEHIND} files`)
  }
}

/** The digest of what links of a directory lead to outside of it, in hex; null when there is nothing of that kind. */
export async function digestBehind(
  folder: string,
  { name, target: text = '' }: TreePart,
  walk = new Walk(),
): Promise<string | null> {
  const target = await walk.behind(folder, name, text)
  if (target === null) return null
  walk.take()
  const stats = await stat(target)
  if (stats.isFile()) return hexOf(await digestFile(target))
  if (!stats.isDirectory()) return 'special'
  const lines: string[] = []
  for (const part of await partsOf(target)) {
    walk.take()
    const isFile = part.type === 'file' && (await lstat(join(target, part.name))).isFile()
    const behind = part.type === 'link' ? await digestBehind(target, part, walk) : null
    lines.push(JSON.stringify([part, isFile ? hexOf(await digestFile(join(target, part.name))) : behind]))
  }
  return hexOf(digestOf(lines.join('\n')))
}

/** What a file or directory looks like, without reading it. A change of content changes it, unless the clock stood still. */
export interface Look {
  readonly size: number
  readonly text: string
  /** The same without what changes with other names of the file. */
  readonly written: string
  /** The latest change in it, in milliseconds. */
  readonly changed: number
  readonly isDirectory: boolean
  readonly isExecutable: boolean
}

const lineOf = ({ size, mtimeNs, ctimeNs, ino, dev, mode }: BigIntStats): string =>
  `${size} ${mtimeNs} ${ctimeNs} ${ino} ${dev} ${mode}`

export const writtenOf = ({ size, mtimeNs, ino, dev }: BigIntStats): string =>
  `${size} ${mtimeNs} ${ino} ${dev}`

/** At once; undefined for all that is no file. */
export function lookNow(path: string): Look | null | undefined {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (!stats) return null
    return stats.isFile() ? lookOf(stats) : undefined
  } catch {
    return undefined
  }
}

/** Null when nothing is there, or something else than a file or a directory. */
export async function lookAt(path: string): Promise<Look | null> {
  const stats = await stat(path, { bigint: true }).catch(() => null)
  if (!stats) return null
  if (stats.isFile()) return lookOf(stats)
  if (!stats.isDirectory()) return null
  const lines: string[] = []
  const written: string[] = []
  const changed = await lookInside(path, new Walk(), lines, written)
  return {
    size: 0,
    text: `tree ${hexOf(digestOf(lines.join('\n')))}`,
    written: written.join('\n'),
    changed,
    isDirectory: true,
    isExecutable: false,
  }
}

/** Adds a line for each part of a directory, and of those behind its links; returns the latest change. */
async function lookInside(folder: string, walk: Walk, lines: string[], written: string[]): Promise<number> {
  let changed = 0
  for (const { name, type, target } of await partsOf(folder)) {
    const inner = await lstat(join(folder, name), { bigint: true })
    // The time of a folder changes with what Millrace puts there for a moment; its names say enough.
    lines.push(`${JSON.stringify(name)} ${type === 'folder' ? 'folder' : `${lineOf(inner)} ${target ?? ''}`}`)
    written.push(type === 'folder' ? name : writtenOf(inner))
    if (type !== 'folder') changed = Math.max(changed, Number(inner.mtimeMs), Number(inner.ctimeMs))
    if (walk.seen.size > 0) walk.take()
    const behind = target === undefined ? null : await walk.behind(folder, name, target)
    if (behind === null) continue
    const stats = await stat(behind, { bigint: true })
    lines.push(`${JSON.stringify(behind)} ${stats.isDirectory() ? 'folder' : lineOf(stats)}`)
    const later = stats.isDirectory()
      ? await lookInside(behind, walk, lines, written)
      : Math.max(Number(stats.mtimeMs), Number(stats.ctimeMs))
    changed = Math.max(changed, later)
  }
  return changed
}

export function lookOf(stats: BigIntStats): Look {
  return {
    size: Number(stats.size),
    text: lineOf(stats),
    written: writtenOf(stats),
    changed: Math.max(Number(stats.mtimeMs), Number(stats.ctimeMs)),
    isDirectory: false,
    isExecutable: (Number(stats.mode) & 0o111) !== 0,
  }
}
