import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, cp, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { mapAtOnce } from '../general/at-once.ts'
import { digestPath } from './stamp.ts'
import type { FileTable } from './file-table.ts'
import { NO_FILE } from './work.ts'
import type { Work } from './work.ts'

const AT_ONCE = 8

/**
 * Outputs by what they were made of: command, contents of inputs, names. An entry is a folder with the outputs,
 * numbered, and a list of those that there are; it appears whole or not at all, and folders can share a cache.
 */
export class OutputCache {
  readonly #folder: string
  readonly #root: string
  readonly #files: FileTable

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
      .update(JSON.stringify([1, work.text, inputs, outputs]))
      .digest('hex')
  }

  /** Writes the outputs to these places; false when they are not known. */
  async restore(key: string, staged: readonly string[]): Promise<boolean> {
    const entry = this.#entry(key)
    try {
      const made = JSON.parse(await readFile(join(entry, 'made.json'), 'utf8')) as number[]
      for (const i of made) await copy(join(entry, String(i)), resolve(this.#root, staged[i] as string))
      return true
    } catch {
      // Somebody may be clearing the cache; then the task is run.
      return false
    }
  }

  /** Keeps the outputs that are at these places; what went wrong with that is no failure of the task. */
  async store(key: string, staged: readonly string[]): Promise<void> {
    const entry = this.#entry(key)
    const aside = join(this.#folder, `new-${randomBytes(6).toString('hex')}`)
    try {
      await mkdir(aside, { recursive: true })
      const made: number[] = []
      for (const [i, path] of staged.entries()) {
        const from = resolve(this.#root, path)
        if (!(await stat(from).catch(() => null))) continue
        await copy(from, join(aside, String(i)))
        made.push(i)
      }
      await writeFile(join(aside, 'made.json'), JSON.stringify(made))
      await mkdir(dirname(entry), { recursive: true })
      await rename(aside, entry)
    } catch {
      await rm(aside, { recursive: true, force: true }).catch(() => undefined)
    }
  }

  #entry(key: string): string {
    return join(this.#folder, key.slice(0, 2), key.slice(2))
  }
}

async function copy(from: string, to: string): Promise<void> {
  if ((await stat(from)).isDirectory()) await cp(from, to, { recursive: true })
  else await copyFile(from, to, constants.COPYFILE_FICLONE)
}
