import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { Datum } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import { specialKind } from '../../general/special-file.ts'

class Entry {
  datum: Datum | null = null
  directory = false
  inside: Map<string, Entry> | null = null
}

/** A path in the tree of all that tasks use. */
export class Spot {
  readonly #path: string
  readonly #entry: Entry
  /** The nearest directory above the path that tasks use as a whole. */
  readonly above: Datum | null

  constructor(path: string, entry: Entry, above: Datum | null) {
    this.#path = path
    this.#entry = entry
    this.above = above
  }

  get existing(): Datum | null {
    const { datum } = this.#entry
    return datum?.removed ? null : datum
  }

  get wasRemoved(): boolean {
    return this.#entry.datum?.removed ?? false
  }

  datum(directory: boolean): Datum {
    const entry = this.#entry
    entry.directory = directory
    if (!entry.datum || entry.datum.removed) entry.datum = new Datum(this.#path)
    return entry.datum
  }

  /** Gives what makes the path mean again what it means now. */
  restore(): () => void {
    const entry = this.#entry
    const { datum, directory } = entry
    return () => {
      entry.datum = datum
      entry.directory = directory
    }
  }
}

/** The data that files and directories are, by absolute path. A directory contains what is inside it. */
export class Paths {
  readonly #root = new Entry()

  /** One file, one path: links are followed, also where the file itself is one. */
  static absolute(path: string): string {
    const full = resolve(path)
    // Nearly all that tasks read is there, and then this is all there is to do.
    const there = existsSync(full) ? realpath(full) : null
    return there ?? withoutLinks(full, look)
  }

  /** The same for what tasks write. Refuses what is there and is neither a file nor a folder: it cannot be replaced. */
  static writable(path: string): string {
    let last: Stats | undefined
    const found = withoutLinks(path, entry => (last = look(entry)))
    const what = last?.isSymbolicLink() ? look(found) : last
    const kind = what ? specialKind(what) : null
    if (kind === null) return found
    throw new MillraceError('MR_PATH', `${found} is ${kind}, which a task cannot write as its output`)
  }

  /** What has the name, be it a link: its folder without links. */
  static entry(path: string): string {
    const full = resolve(path)
    const folder = dirname(full)
    if (folder === full) return full
    return join(realpath(folder) ?? Paths.entry(folder), basename(full))
  }

  /** One walk tells all that there is to know of a path. */
  at(path: string): Spot {
    let entry = this.#root
    let above: Datum | null = null
    for (let from = 1; from < path.length;) {
      if (entry !== this.#root && entry.directory && entry.datum && !entry.datum.removed) above = entry.datum
      const slash = path.indexOf('/', from)
      const end = slash < 0 ? path.length : slash
      if (end > from) entry = insideOf(entry, path.slice(from, end))
      from = end + 1
    }
    return new Spot(path, entry, above)
  }

  datum(path: string, directory: boolean): Datum {
    return this.at(path).datum(directory)
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
      entry = entry.inside?.get(parts[i] as string)
      if (entry?.directory && entry.datum && !entry.datum.removed) found = entry.datum
    }
    return found
  }

  /** The data of files and directories inside a directory. */
  inside(path: string): Datum[] {
    const found: Datum[] = []
    const collect = (entry: Entry): void => {
      if (!entry.inside) return
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
    for (const part of path.split('/')) if (part !== '' && entry) entry = entry.inside?.get(part)
    return entry
  }
}

function insideOf(entry: Entry, part: string): Entry {
  entry.inside ??= new Map()
  let next = entry.inside.get(part)
  if (!next) entry.inside.set(part, (next = new Entry()))
  return next
}

/** As many as the system follows. */
const MOST_LINKS = 40

/** `lookAt` is asked for each name on the way, the last one last. */
function withoutLinks(path: string, lookAt: (entry: string) => Stats | undefined): string {
  let entry = Paths.entry(path)
  for (let links = 0; ; links++) {
    if (!lookAt(entry)?.isSymbolicLink()) return entry
    const target = realpath(entry)
    if (target !== null) return target
    // What a link names is made there, and the link stays.
    if (links === MOST_LINKS) throw unusable(entry, 'its links lead in a circle')
    entry = Paths.entry(resolve(dirname(entry), readlinkSync(entry)))
  }
}

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
