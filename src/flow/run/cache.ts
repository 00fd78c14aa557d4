import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import {
  copyFile,
  cp,
  lstat,
  mkdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { mapAtOnce } from '../../general/at-once.ts'
import { digestPath } from '../state/stamp.ts'
import type { FileTable } from '../state/file-table.ts'
import { NO_FILE } from '../plan/work.ts'
import type { Work } from '../plan/work.ts'

const AT_ONCE = 8

/**
 * Outputs by what they were made of: command, contents of inputs, names. An entry is a folder with the outputs,
 * numbered, and a list of those that there are with what they hold; it appears whole or not at all, and folders can share a cache.
 */
export class OutputCache {
  readonly #folder: string
  readonly #root: string
  readonly #files: FileTable
  /** Entries that were found not to be as they were kept. */
  readonly #broken = new Set<string>()

  constructor(folder: string, root: string, files: FileTable) {
    this.#folder = folder
    this.#root = root
    this.#files = files
  }

  async keyOf(work: Work): Promise<string> {
    const inputs = await mapAtOnce(AT_ONCE, work.inputs, async input => {
      if (input === NO_FILE) return null
      const path = this.#files.path(input)
      return [path, await digestPath(resolve(this.#root, path))]
    })
    const outputs = work.outputs.map(output => this.#files.path(output))
    return createHash('sha256')
      .update(JSON.stringify([2, work.text, inputs, outputs]))
      .digest('hex')
  }

  /** Writes the outputs to these places; false when they are not known, or not as they were kept: then nothing is there. */
  async restore(key: string, staged: readonly string[]): Promise<boolean> {
    const entry = this.#entry(key)
    const list = await readFile(join(entry, 'made.json'), 'utf8').catch(() => null)
    if (list === null) return false
    const places = staged.map(path => resolve(this.#root, path))
    const folders = await mapAtOnce(AT_ONCE, places, isFolder)
    try {
      for (const [i, digest] of JSON.parse(list) as [number, string][]) {
        const place = places[i] as string
        await copy(join(entry, String(i)), place)
        if ((await digestMade(place)) !== digest) throw new Error('it is not what was kept')
      }
      return true
    } catch {
      // Another process may be clearing the cache, or a disk failed: the task runs, and its outputs are kept instead.
      this.#broken.add(key)
      for (const [i, place] of places.entries()) {
        await rm(place, { recursive: true, force: true })
        if (folders[i]) await mkdir(place)
      }
      return false
    }
  }

  /** Keeps the outputs that are at these places; what went wrong with that is no failure of the task. */
  async store(key: string, staged: readonly string[]): Promise<void> {
    const entry = this.#entry(key)
    const aside = join(this.#folder, `new-${randomBytes(6).toString('hex')}`)
    try {
      await mkdir(aside, { recursive: true })
      const made: [number, string][] = []
      for (const [i, path] of staged.entries()) {
        const from = resolve(this.#root, path)
        if (!(await lstat(from).catch(() => null))) continue
        const kept = join(aside, String(i))
        await copy(from, kept)
        made.push([i, await digestMade(kept)])
      }
      await writeFile(join(aside, 'made.json'), JSON.stringify(made))
      await mkdir(dirname(entry), { recursive: true })
      if (this.#broken.delete(key)) await rm(entry, { recursive: true, force: true })
      await rename(aside, entry)
    } catch {
      await rm(aside, { recursive: true, force: true }).catch(() => undefined)
    }
  }

  #entry(key: string): string {
    return join(this.#folder, key.slice(0, 2), key.slice(2))
  }
}

/** Links stay what they are, with the text that they have: it is meant for where they will be. */
async function copy(from: string, to: string): Promise<void> {
  const stats = await lstat(from)
  if (stats.isSymbolicLink()) await symlink(await readlink(from), to)
  else if (stats.isDirectory()) await cp(from, to, { recursive: true, verbatimSymlinks: true })
  else await copyFile(from, to, constants.COPYFILE_FICLONE)
}

async function digestMade(path: string): Promise<string> {
  return (await lstat(path)).isSymbolicLink() ? `-> ${await readlink(path)}` : digestPath(path)
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isDirectory() ?? false
}
