import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { Datum } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import { specialKind } from '../../general/special-file.ts'

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
    let entry = Paths.entry(path)
    for (let links = 0; ; links++) {
      const found = look(entry)
      if (!found?.isSymbolicLink()) return entry
      const target = realpath(entry)
      if (target !== null) return target
      // What a link names is made there, and the link stays.
      if (links === MOST_LINKS) throw unusable(entry, 'its links lead in a circle')
      entry = Paths.entry(resolve(dirname(entry), readlinkSync(entry)))
    }
  }

  /** Refuses what is there and is neither a file nor a folder: it cannot be replaced by what a task writes. */
  static expectWritable(path: string): void {
    const found = look(path)
    const what = found ? specialKind(found) : null
    if (what === null) return
    throw new MillraceError('MR_PATH', `${path} is ${what}, which a task cannot write as its output`)
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

  /** Gives what makes the path mean again what it means now. */
  restore(path: string): () => void {
    const entry = this.#entry(path)
    const { datum, directory } = entry
    return () => Object.assign(entry, { datum, directory })
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

/** As many as the system follows. */
const MOST_LINKS = 40

const unusable = (path: string, why: string): MillraceError =>
  new MillraceError('MR_PATH', `${path} cannot be used: ${why}`)

function look(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENAMETOOLONG') throw unusable(path, 'it is too long')
    return undefined
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
