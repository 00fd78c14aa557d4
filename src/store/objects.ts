import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, link, lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from './disk.ts'
import { digestFile, writtenOf } from './file-digest.ts'
import { hasEnded, thisProcess } from '../storage/owner.ts'
import { digestOf, hexOf, sameDigest } from './digest.ts'
import type { Digest } from './digest.ts'

/** A file that is held until its digest is known. */
export interface Held {
  readonly path: string
  /** What it looked like, where it is a link to a file that others can write to. */
  readonly written: string | null
}

/** A copy of a smaller file costs as much as a link, and is not changed by who writes to the file; bytes. */
const SMALL = 64 * 1024

/** What another host, or an older version, has left in `new` goes after this many milliseconds. */
const LEFT_AGE = 24 * 3600_000

const hostKey = (host: string): string => hexOf(digestOf(host)).slice(0, 8)

let name: string | undefined
function ownName(): string {
  if (name !== undefined) return name
  const { pid, started, host } = thisProcess()
  return (name = `${hostKey(host)}-${pid}-${started}`)
}

/** Removes what killed runs have left. */
async function dropLeft(folder: string): Promise<void> {
  const { host } = thisProcess()
  for (const one of await readdir(folder).catch(() => [])) {
    const path = join(folder, one)
    const [key, pid, started = ''] = one.split('-')
    const isOver =
      key === hostKey(host)
        ? hasEnded({ pid: Number(pid), started, host })
        : Date.now() - ((await lstat(path).catch(() => null))?.ctimeMs ?? Infinity) > LEFT_AGE
    if (isOver) await rm(path, { force: true }).catch(() => undefined)
  }
}

const yes = (): boolean => true
const no = (): boolean => false

/** Content of files, by digest. An object is there whole or not at all, and is compared with its digest when it is used. */
export class Objects {
  readonly #folder: string
  readonly #isReadOnly: boolean
  readonly #made = new Set<string>()
  /** Kept, and perhaps not on the disk yet. */
  #unsynced: string[] = []

  constructor(store: string, isReadOnly: boolean) {
    this.#folder = store
    this.#isReadOnly = isReadOnly
  }

  pathOf(digest: Digest): string {
    const hex = hexOf(digest)
    return join(this.#folder, 'objects', hex.slice(0, 2), hex.slice(2))
  }

  async has(digest: Digest): Promise<boolean> {
    return (await lstat(this.pathOf(digest)).catch(() => null)) !== null
  }

  /**
   * Takes hold of a file as it is now: by sharing its blocks or as another link to it where the file system can, else by
   * a copy. A link costs nothing, and what is written to the file in its place later is seen by its times or by the digest.
   */
  async hold(path: string): Promise<Held> {
    const held = await this.#newPath()
    try {
      await copyFile(path, held, constants.COPYFILE_FICLONE_FORCE)
    } catch {
      const { size } = await stat(path)
      const isLinked = size > SMALL && (await link(path, held).then(yes, no))
      if (isLinked) return { path: held, written: writtenOf(await stat(held, { bigint: true })) }
      await copyFile(path, held, constants.COPYFILE_EXCL)
    }
    return { path: held, written: null }
  }

  /** What was held becomes an object, and its digest is returned; null when it was written to meanwhile. */
  async keepHeld({ path, written }: Held): Promise<Digest | null> {
    try {
      const digest = await digestFile(path)
      if (written !== null && writtenOf(await stat(path, { bigint: true })) !== written) {
        await this.drop(path)
        return null
      }
      await this.keep(path, digest)
      return digest
    } catch (error) {
      await this.drop(path)
      throw error
    }
  }

  /** What was held becomes the object with this digest. */
  async keep(held: string, digest: Digest): Promise<void> {
    const path = this.pathOf(digest)
    await this.#makeFolder(dirname(path))
    await rename(held, path)
    // Two links to one file: renaming the one over the other leaves both.
    await rm(held, { force: true })
    this.#unsynced.push(path)
  }

  /** All that was kept so far is on the disk. */
  async sync(): Promise<void> {
    const paths = this.#unsynced
    this.#unsynced = []
    for (const path of paths) {
      const file = await open(path, 'r').catch(() => null)
      await file?.sync().catch(() => undefined)
      await file?.close()
    }
    for (const folder of new Set(paths.map(path => dirname(path)))) await syncFolder(folder)
  }

  async drop(held: string): Promise<void> {
    await rm(held, { force: true })
  }

  /** Bytes of their own. */
  async put(digest: Digest, bytes: Uint8Array): Promise<void> {
    if (this.#isReadOnly || (await this.has(digest))) return
    const held = await this.#newPath()
    const file = await open(held, 'wx')
    try {
      await file.writeFile(bytes)
    } finally {
      await file.close()
    }
    await this.keep(held, digest)
  }

  /** Writes the object to a path where nothing is; false when it is not there, or damaged: then nothing is written. */
  async restore(digest: Digest, path: string): Promise<boolean> {
    const from = this.pathOf(digest)
    try {
      await copyFile(from, path, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL)
      if (sameDigest(await digestFile(path), digest)) return true
      // The file that it is a link to was written to.
      if (!this.#isReadOnly) await rm(from, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error
    }
    await rm(path, { force: true })
    return false
  }

  /** All objects, with their sizes. */
  async *all(): AsyncGenerator<{ hex: string; path: string; size: number; changed: number }> {
    const root = join(this.#folder, 'objects')
    for (const part of await readdir(root).catch(() => [])) {
      for (const name of await readdir(join(root, part)).catch(() => [])) {
        const path = join(root, part, name)
        const stats = await lstat(path).catch(() => null)
        if (stats) yield { hex: part + name, path, size: stats.size, changed: stats.ctimeMs }
      }
    }
  }

  /** A path for what is not complete yet. It names this process, so that what is left of a killed one is known. */
  async #newPath(): Promise<string> {
    const folder = join(this.#folder, 'new')
    const isFirst = !this.#made.has(folder)
    await this.#makeFolder(folder)
    if (isFirst) void dropLeft(folder)
    return join(folder, `${ownName()}-${randomBytes(6).toString('hex')}`)
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#made.has(folder)) return
    await mkdir(folder, { recursive: true })
    this.#made.add(folder)
  }
}
