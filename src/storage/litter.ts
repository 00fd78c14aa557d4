import { readdir } from 'node:fs/promises'
import { basename } from 'node:path'

/** So many names are told. */
const TOLD = 5

/** So many places are remembered: where there are more, all of them have been written by tasks of the same kinds. */
const MOST = 100

/**
 * What tasks wrote beside their outputs without declaring it, such as the index of a file. It is never brought to the
 * user's folder, and goes with the staging folder: whoever misses it should learn why.
 */
export class Litter {
  /** Places that could not be removed after their output had left, and the user's path of that output. */
  readonly #places = new Map<string, string>()
  readonly #declared = new Set<string>()

  /** Other outputs of the same task may be there for a while, until `gone`. */
  found(place: string, path: string, error: unknown): void {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOTEMPTY' && this.#places.size < MOST) this.#places.set(place, path)
  }

  gone(place: string): void {
    this.#places.delete(place)
  }

  /** An output that stays in its place to the end. */
  declare(path: string): void {
    this.#declared.add(basename(path))
  }

  /** A sentence that names it, to be asked before it is removed; null when there is none. */
  async describe(): Promise<string | null> {
    const left: string[] = []
    for (const [place, path] of this.#places) {
      const names = await readdir(place).catch(() => [])
      for (const name of names) if (!this.#declared.has(name)) left.push(`${name} (beside ${path})`)
    }
    if (left.length === 0) return null
    const more = left.length > TOLD ? ', and more' : ''
    return `removed what tasks wrote beside their outputs without declaring it: ${left.slice(0, TOLD).join(', ')}${more}. Give each a parameter of its own, as FILE_OUT.`
  }
}
