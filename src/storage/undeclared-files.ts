import { readdir } from 'node:fs/promises'
import { basename } from 'node:path'
import { atHome } from '../core/data/staging-name.ts'
import { isOfTask } from './spare-folders.ts'

/** Files that a task wrote beside the output at this path. */
export interface Left {
  readonly names: readonly string[]
  readonly path: string
}

/** Maximum number of names listed. */
const TOLD = 5

/** Maximum number of places remembered. Where there are more, tasks of the same kinds have written them. */
const MOST = 100

/**
 * What tasks wrote beside their outputs without declaring it, such as the index of a file. It is never brought to the
 * user's folder, and is removed with the staging folder, so a warning names it.
 */
export class UndeclaredFiles {
  /** Places that could not be removed after their output had left, and the user's path of that output. */
  readonly #places = new Map<string, string>()
  readonly #declared = new Set<string>()

  /** Other outputs of the same task may be there for a while, until `gone`. */
  found(place: string, path: string): void {
    if (this.#places.size < MOST) this.#places.set(place, path)
  }

  gone(place: string): void {
    this.#places.delete(place)
  }

  /** An output that stays in its place to the end. */
  declare(path: string): void {
    this.#declared.add(basename(path))
  }

  isFound(places: readonly string[]): boolean {
    return this.#places.size > 0 && places.some(place => this.#places.has(place))
  }

  /** What a task left in the places of its outputs, and beside which of them; it is reported once. */
  async take(places: readonly string[], own: ReadonlySet<string>): Promise<Left | null> {
    for (const place of new Set(places)) {
      const path = this.#places.get(place)
      if (path === undefined) continue
      const found = (await readdir(place).catch(() => [])).filter(isOfTask)
      const names = found.filter(name => !own.has(name))
      if (names.length === 0) continue
      this.#places.delete(place)
      return { names, path: atHome(path) }
    }
    return null
  }

  /** Of these it is known already. */
  forget(places: readonly string[]): void {
    for (const place of places) this.#places.delete(place)
  }

  /** A sentence that names it, to be asked before it is removed; null when there is none. */
  async describe(): Promise<string | null> {
    const left: string[] = []
    for (const [place, path] of this.#places) {
      const names = await readdir(place).catch(() => [])
      for (const name of names.filter(isOfTask))
        if (!this.#declared.has(name)) left.push(`${name} (beside ${atHome(path)})`)
    }
    if (left.length === 0) return null
    const more = left.length > TOLD ? ', and more' : ''
    return `removed what tasks wrote beside their outputs without declaring it: ${left.slice(0, TOLD).join(', ')}${more}. Give each a parameter of its own, as FILE_OUT.`
  }
}
