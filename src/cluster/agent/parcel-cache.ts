import { createHash, randomBytes } from 'node:crypto'
import { lstatSync, mkdirSync, utimesSync } from 'node:fs'
import { lstat, mkdir, readFile, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { walk } from '../files/tree.ts'
import type { TreesIn } from '../files/trees-in.ts'

/** Written last, beside the content: names and sizes of all that is there. */
const COMPLETE = '.complete'
/** What was not used for so long goes; milliseconds. */
const OLDEST = 30 * 24 * 3600 * 1000
/** Above this many bytes, the least recently used goes, unless a run may still use it. */
const MOST_BYTES = 2 * 2 ** 30
const IN_USE = 24 * 3600 * 1000

/** The folder of this user in which programs are kept that were sent here. Other users cannot write to it. */
function cacheFolder(): string {
  const base = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  const folder = join(base, 'millrace', 'programs')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { uid, mode } = lstatSync(folder)
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0) throw new Error(`others can write to ${folder}`)
  return folder
}

/** Programs by the hash of their content, kept for later runs. Several runs may use it at one time. */
export class ParcelCache {
  readonly #folder: string
  readonly #package: string
  readonly #announce: (folder: string) => void

  /** `packageRoot`: that of Millrace here. `fallback`: a folder that goes with the run, for users who have no place for a cache. */
  constructor(packageRoot: string, fallback: string, announce: (folder: string) => void) {
    this.#package = packageRoot
    this.#announce = announce
    let folder: string
    try {
      folder = cacheFolder()
    } catch {
      folder = join(fallback, '.programs')
      mkdirSync(folder, { recursive: true, mode: 0o700 })
    }
    this.#folder = folder
  }

  /** Where the content is; null when it is not there, or not what it was. */
  async find(hash: string): Promise<string | null> {
    const folder = this.#folderOf(hash)
    try {
      const expected = await readFile(join(folder, COMPLETE), 'utf8')
      if (expected !== (await summaryOf(folder))) throw new Error('it was changed')
      const now = new Date()
      utimesSync(join(folder, COMPLETE), now, now)
      return folder
    } catch {
      return null
    }
  }

  /** Takes the stream with this number, which must have this hash. */
  async take(hash: string, number: number, trees: TreesIn): Promise<string> {
    const folder = this.#folderOf(hash)
    const place = join(this.#folder, `.new-${randomBytes(8).toString('hex')}`)
    const aside = join(place, 'program')
    const digest = createHash('sha256')
    // What an agent that is killed has written so far is removed by its watchdog.
    this.#announce(place)
    try {
      await trees.expect(number, aside, digest)
      if (digest.digest('hex') !== hash)
        throw new Error('the program that came is not the one that was announced')
      await linkPackage(aside, this.#package)
      await writeFile(join(aside, COMPLETE), await summaryOf(aside))
      // What is there was found to be damaged, or another run was quicker.
      if ((await this.find(hash)) === null) {
        await rm(folder, { recursive: true, force: true })
        await rename(aside, folder).catch(async (error: unknown) => {
          if ((await this.find(hash)) === null) throw error
        })
      }
      await this.#prune(folder)
      return folder
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  }

  /** Agents of another installation have one of their own. */
  #folderOf(hash: string): string {
    const own = createHash('sha256').update(this.#package).digest('hex')
    return join(this.#folder, `${hash.slice(0, 40)}-${own.slice(0, 8)}`)
  }

  async #prune(used: string): Promise<void> {
    const now = Date.now()
    const all: { path: string; usedAt: number; bytes: number }[] = []
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name)
      if (path === used) continue
      const marker = await stat(join(path, COMPLETE)).catch(() => null)
      const usedAt = (marker ?? (await lstat(path).catch(() => null)))?.mtimeMs ?? now
      all.push({ path, usedAt, bytes: marker ? await bytesOf(path) : 0 })
    }
    all.sort((a, b) => a.usedAt - b.usedAt)
    let bytes = all.reduce((sum, one) => sum + one.bytes, 0)
    for (const { path, usedAt, bytes: own } of all) {
      const age = now - usedAt
      if (age < IN_USE || (age < OLDEST && bytes <= MOST_BYTES)) continue
      bytes -= own
      await rm(path, { recursive: true, force: true })
    }
  }
}

async function bytesOf(folder: string): Promise<number> {
  let bytes = 0
  for await (const { facts } of walk(folder)) bytes += Number(facts.size)
  return bytes
}

/** Names and sizes of all that is in a folder. */
async function summaryOf(folder: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const { name, facts } of walk(folder)) {
    if (name === COMPLETE) continue
    hash.update(`${name}\0${facts.isFile() ? facts.size : ''}\0`)
  }
  return hash.digest('hex')
}

/** Modules of the program find Millrace by its name: it is the one that the agent runs. */
async function linkPackage(folder: string, packageRoot: string): Promise<void> {
  const at = join(folder, 'node_modules')
  await mkdir(at, { recursive: true })
  await rm(join(at, 'millrace'), { recursive: true, force: true })
  await symlink(packageRoot, join(at, 'millrace'))
}
