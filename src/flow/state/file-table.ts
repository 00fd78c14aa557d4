import { readdirSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { MillraceError } from '../../core/errors.ts'
import { hashText } from '../../general/hash.ts'
import { PathIndex } from './path-index.ts'
import { expectText } from '../language/readable-name.ts'

/** Values of `nowSize` besides sizes. */
export const UNSEEN = -2
export const MISSING = -1

export const RACY = 1
const TAKEN = 2

/** What a file looks like from outside. Equal looks mean equal content, but for the doubts below. */
export interface Look {
  readonly size: number
  readonly mtime: number
  /** Changes with each write, which cannot be hidden, but also with names, links and permissions. */
  readonly ctime: number
  readonly ino: number
  readonly isFolder?: boolean
  /** How many files are in a folder. */
  readonly entries?: number
  /** Neither file nor folder: its content is not looked at. */
  readonly isSpecial?: boolean
}

/** Stats the files of the last run while the workflow file is still being loaded. */
export interface StatPrefetch {
  /** Copies the stat of a file into the table; false if it has not been statted yet. */
  tell(file: number, files: FileTable): boolean
  stop(): void
}

/**
 * All files of a workflow, in columns, because there are many: what each looked like when the stamp of its
 * content was taken, and what it looks like now. Paths are relative to the folder of the workflow.
 */
export class FileTable {
  paths: string[] = []
  #index = new PathIndex(this.paths)
  size = new Float64Array(0)
  mtime = new Float64Array(0)
  /** 0 when it is not known: moving a file to its place changes it. */
  ctime = new Float64Array(0)
  ino = new Float64Array(0)
  /** Stands for the content; 0 when it is not known. */
  stamp = new Float64Array(0)
  /**
   * Bits. RACY: the stamp was taken so soon after the last change that a further one may have gone unnoticed.
   * TAKEN: no task made it; it was there and the user said that it is right (--touch).
   */
  racy = new Uint8Array(0)
  /** Those that are directories now. */
  readonly folders = new Set<number>()
  readonly #specials = new Set<number>()
  nowSize = new Float64Array(0)
  nowMtime = new Float64Array(0)
  nowCtime = new Float64Array(0)
  nowIno = new Float64Array(0)
  ahead: StatPrefetch | null = null

  id(path: string): number {
    const known = this.#index.find(path)
    if (known >= 0) return known
    const id = this.paths.length
    this.paths.push(path)
    this.#index.added()
    if (id >= this.size.length) this.#reserve(Math.max(1024, id * 2))
    this.nowSize[id] = UNSEEN
    return id
  }

  /** The same with a guess, which saves the search. */
  isAt(guess: number, path: string): boolean {
    return guess >= 0 && guess < this.paths.length && this.paths[guess] === path
  }

  find(path: string): number | undefined {
    const found = this.#index.find(path)
    return found < 0 ? undefined : found
  }

  path(id: number): string {
    return this.paths[id] as string
  }

  /** Takes over columns that were read from a file; the table must be empty. */
  load(
    paths: string[],
    columns: {
      size: Float64Array
      mtime: Float64Array
      ctime: Float64Array
      ino: Float64Array
      stamp: Float64Array
      racy: Uint8Array
    },
  ): void {
    this.paths = paths
    this.#index = new PathIndex(paths)
    Object.assign(this, columns)
    for (const name of ['nowSize', 'nowMtime', 'nowCtime', 'nowIno'] as const) {
      this[name] = new Float64Array(paths.length)
    }
    this.nowSize.fill(UNSEEN)
  }

  /** Stats the file, once per plan. False when it is missing. */
  exists(id: number): boolean {
    if (this.nowSize[id] === UNSEEN) {
      if (!this.ahead?.tell(id, this)) this.see(id, lookAt(this.path(id)))
    }
    return this.nowSize[id] !== MISSING
  }

  see(id: number, look: Look | null): void {
    if (look?.isFolder) this.folders.add(id)
    else if (this.folders.size > 0) this.folders.delete(id)
    if (look?.isSpecial) this.#specials.add(id)
    else if (this.#specials.size > 0) this.#specials.delete(id)
    this.nowSize[id] = look ? look.size : MISSING
    this.nowMtime[id] = look ? look.mtime : 0
    this.nowCtime[id] = look ? look.ctime : 0
    this.nowIno[id] = look ? look.ino : 0
  }

  /** What a plain file looked like in this plan. */
  look(id: number): Look | null {
    const size = this.nowSize[id] as number
    if (size < 0 || this.folders.has(id) || this.#specials.has(id)) return null
    return {
      size,
      mtime: this.nowMtime[id] as number,
      ctime: this.nowCtime[id] as number,
      ino: this.nowIno[id] as number,
    }
  }

  forget(id: number): void {
    this.nowSize[id] = UNSEEN
  }

  /** It looks as it did when its stamp was taken. */
  isAsStamped(id: number): boolean {
    return (
      this.stamp[id] !== 0 &&
      this.nowSize[id] === this.size[id] &&
      this.nowMtime[id] === this.mtime[id] &&
      (this.nowCtime[id] === this.ctime[id] || this.ctime[id] === 0) &&
      this.nowIno[id] === this.ino[id] &&
      ((this.racy[id] as number) & RACY) === 0
    )
  }

  /** The stamp, and what the file looked like then; null when there is none. */
  stamped(id: number): (Look & { readonly stamp: number }) | null {
    const stamp = this.stamp[id] as number
    if (stamp === 0) return null
    return {
      stamp,
      size: this.size[id] as number,
      mtime: this.mtime[id] as number,
      ctime: this.ctime[id] as number,
      ino: this.ino[id] as number,
    }
  }

  setStamp(id: number, look: Look, stamp: number, racy: boolean): void {
    this.size[id] = look.size
    this.mtime[id] = look.mtime
    this.ctime[id] = look.ctime
    this.ino[id] = look.ino
    this.stamp[id] = stamp
    this.racy[id] = (this.isTaken(id) ? TAKEN : 0) | (racy ? RACY : 0)
    this.see(id, look)
  }

  isTaken(id: number): boolean {
    return ((this.racy[id] as number) & TAKEN) !== 0
  }

  setTaken(id: number, is: boolean): void {
    const racy = (this.racy[id] as number) & RACY
    this.racy[id] = is ? racy | TAKEN : racy
  }

  #reserve(length: number): void {
    for (const name of [
      'size',
      'mtime',
      'ctime',
      'ino',
      'stamp',
      'nowSize',
      'nowMtime',
      'nowCtime',
      'nowIno',
    ] as const) {
      const grown = new Float64Array(length)
      grown.set(this[name])
      this[name] = grown
    }
    const racy = new Uint8Array(length)
    racy.set(this.racy)
    this.racy = racy
  }
}

const QUIET = { throwIfNoEntry: false } as const

/** Null when nothing is there. Links are followed: what counts is what a program would read. */
export function lookAt(path: string): Look | null {
  const stats = statOf(path)
  if (!stats) return null
  if (stats.isDirectory()) return lookInside(path, stats.ino)
  return lookOf(stats)
}

/** The same without an error for what cannot be statted. */
export function lookQuietly(path: string): Look | null {
  try {
    return lookAt(path)
  } catch {
    return null
  }
}

export const lookOf = (stats: Stats): Look => {
  const { size, mtimeMs: mtime, ctimeMs: ctime, ino } = stats
  // Pipes and devices change with each use, and there is no end to what can be read from some.
  return stats.isFile() ? { size, mtime, ctime, ino } : { size: 0, mtime: 1, ctime: 1, ino, isSpecial: true }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, QUIET)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new MillraceError('MR_FLOW_MISSING', `${path} cannot be looked at: ${code}`, { cause })
  }
}

/** A directory looks like all that is in it. */
function lookInside(folder: string, ino: number): Look {
  let size = 0
  let mark = 1
  let ctime = 0
  let entries = 0
  const walk = (path: string, name: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true }).sort(byName)) {
      if (isOwnName(entry.name)) continue
      expectText(path, entry.name)
      const inner = `${path}/${entry.name}`
      const shown = `${name}/${entry.name}`
      if (entry.isDirectory()) {
        mark = hashText(`${mark}${shown}/`)
        walk(inner, shown)
        continue
      }
      const stats = statOf(inner)
      entries++
      size += stats?.size ?? 0
      ctime = Math.max(ctime, stats?.ctimeMs ?? 0)
      mark = hashText(`${mark}${shown}\0${stats?.size ?? 'gone'}\0${stats?.mtimeMs ?? 0}`)
    }
  }
  walk(folder, '')
  return { size, mtime: mark, ctime, ino, isFolder: true, entries }
}

/** What Millrace itself keeps in folders of the workflow, for a while or longer: it is not part of a folder's content. */
export const isOwnName = (name: string): boolean => name === '.millrace' || name.startsWith('.millrace-')

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)
