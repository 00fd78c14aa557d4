import { lstatSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { Datum } from '../core/data.ts'

interface Entry {
  datum: Datum | null
  directory: boolean
  readonly inside: Map<string, Entry>
}

const newEntry = (): Entry => ({ datum: null, directory: false, inside: new Map() })

/** The data that files and directories are, by absolute path. A directory contains what is inside it. */
export class Paths {
  readonly #root = newEntry()

  /** One file, one path: links are followed, also where the file itself is one. */
  static absolute(path: string): string {
    const entry = Paths.entry(path)
    const isLink = lstatSync(entry, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
    return (isLink ? realpath(entry) : null) ?? entry
  }

  /** What has the name, be it a link: its folder without links. */
  static entry(path: string): string {
    const full = resolve(path)
    const folder = dirname(full)
    if (folder === full) return full
    return join(realpath(folder) ?? Paths.entry(folder), basename(full))
  }

  datum(path: string, directory: boolean): Datum {
    const entry = this.#entry(path)
    entry.directory = directory
    if (!entry.datum || entry.datum.removed) entry.datum = new Datum(path)
    return entry.datum
  }

  wasRemoved(path: string): boolean {
    return this.#walk(path)?.datum?.removed ?? false
  }

  find(path: string): Datum | null {
    const datum = this.#walk(path)?.datum ?? null
    return datum?.removed ? null : datum
  }

  /** The nearest directory above the path that tasks use as a whole. */
  directoryAbove(path: string): Datum | null {
    let entry: Entry | undefined = this.#root
    let found: Datum | null = null
    const parts = path.split('/')
    for (let i = 1; i < parts.length - 1 && entry; i++) {
      entry = entry.inside.get(parts[i] as string)
      if (entry?.directory && entry.datum && !entry.datum.removed) found = entry.datum
    }
    return found
  }

  /** The data of files and directories inside a directory. */
  inside(path: string): Datum[] {
    const found: Datum[] = []
    const collect = (entry: Entry): void => {
      for (const child of entry.inside.values()) {
        if (child.datum && !child.datum.removed) found.push(child.datum)
        collect(child)
      }
    }
    const entry = this.#walk(path)
    if (entry) collect(entry)
    return found
  }

  *all(): Generator<Datum> {
    yield* this.inside('/')
  }

  #walk(path: string): Entry | undefined {
    let entry: Entry | undefined = this.#root
    for (const part of path.split('/')) if (part !== '' && entry) entry = entry.inside.get(part)
    return entry
  }

  #entry(path: string): Entry {
    let entry = this.#root
    for (const part of path.split('/')) {
      if (part === '') continue
      let next = entry.inside.get(part)
      if (!next) entry.inside.set(part, (next = newEntry()))
      entry = next
    }
    return entry
  }
}

function realpath(path: string): string | null {
  try {
    return realpathSync.native(path)
  } catch {
    // It is not there yet, or leads nowhere.
    return null
  }
}
