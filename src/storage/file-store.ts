import { constants } from 'node:fs'
import { copyFile, cp, link, lstat, mkdir, rename, rm, rmdir } from 'node:fs/promises'
import { rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { nearestValid } from '../core/data.ts'
import type { Datum, Version } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'

/** Where one version of a file or directory is. */
export class FileCopy {
  path: string
  /** Still in a staging folder beside the place where the user wants it. */
  staged: boolean

  constructor(path: string, staged: boolean) {
    this.path = path
    this.staged = staged
  }
}

/**
 * Versions of files. A task never writes to the path that the user named, but to one in a staging folder on
 * the same file system; what it made is renamed into place, whole, when the task has ended well. So a
 * failed, cancelled or killed task leaves its inputs and earlier outputs as they were, each attempt starts
 * from the original, and a reader of an older version is not disturbed by a newer one.
 */
export class FileStore {
  readonly #run: string
  readonly #announce: (folder: string) => void
  /** Staging folders, and how many places in them are in use. */
  readonly #folders = new Map<string, number>()
  /** The version that is at the user's path. */
  readonly #inPlace = new WeakMap<Datum, Version>()
  /** What is being done with a file: it moves, so nobody may look for it meanwhile. */
  readonly #moving = new WeakMap<Datum, Promise<unknown>>()
  #count = 0

  constructor(run: string, announce: (folder: string) => void) {
    this.#run = run
    this.#announce = announce
  }

  /** The path of a version that is read; fails when nothing is there. */
  async read(version: Version): Promise<string> {
    await this.#moving.get(version.datum)
    const path = this.pathOf(version)
    if (!(await exists(path))) {
      throw new MillraceError('MR_INPUT_MISSING', `${version.datum.path} does not exist${reasonFor(version)}`)
    }
    return path
  }

  pathOf(version: Version): string {
    return version.value instanceof FileCopy ? version.value.path : (version.datum.path as string)
  }

  /** A place to write a version to, holding what is in `source` when that is given; `beside` other outputs of its task. */
  async stage(
    datum: Datum,
    directory: boolean,
    source: Version | null,
    take: boolean,
    beside: string | null = null,
  ): Promise<string> {
    const path = datum.path as string
    // Nothing of it is committed before it is staged, so the oldest version is the one from before the run.
    if (!this.#inPlace.has(datum)) this.#inPlace.set(datum, oldest(datum.current))
    const folder = this.#folderFor(path)
    if (!this.#folders.has(folder)) this.#announce(folder)
    this.#folders.set(folder, (this.#folders.get(folder) ?? 0) + 1)
    const staged = join(beside ?? join(folder, String(++this.#count)), basename(path))
    await mkdir(directory ? staged : dirname(staged), { recursive: true })
    if (!source) return staged
    const from = await this.read(source)
    if (take && source.value instanceof FileCopy && source.value.staged) {
      if (directory) await rm(staged, { recursive: true })
      await rename(from, staged)
      source.value = undefined
      await this.drop(from)
    } else if (directory) {
      const own = `.millrace-${this.#run}`
      const filter = (inner: string): boolean => basename(inner) !== own
      await cp(from, staged, { recursive: true, preserveTimestamps: true, filter })
    } else await copyFile(from, staged, constants.COPYFILE_FICLONE)
    return staged
  }

  /** A place holding a copy of a file that is not a datum. */
  async copyIn(datum: Datum, directory: boolean, from: string): Promise<string> {
    const staged = await this.stage(datum, directory, null, false)
    await cp(from, staged, { recursive: directory })
    return staged
  }

  /** To be asked for all outputs of a task before the first is committed: it makes all of them or none. */
  async expectOutput(version: Version, staged: string, task: string): Promise<void> {
    if (await exists(staged)) return
    throw new MillraceError('MR_OUTPUT_MISSING', `${task} ended without writing ${version.datum.path}`)
  }

  /** The task has written the version: it is moved to the user's path as soon as nobody reads an older one there. */
  async commit(version: Version, staged: string): Promise<void> {
    if (!(await exists(staged))) return
    version.value = new FileCopy(staged, true)
    // Others of a team may still fail, and then the original is wanted. Else no reader has been told the
    // staged path yet.
    if (!version.superseded && !version.team) await this.publish(version, false)
  }

  /** Returns the version whose readers are in the way, if there is one. */
  publish(version: Version, hasReaders?: boolean): Promise<Version | null> {
    return this.#alone(version.datum, () => this.#publish(version, hasReaders ?? version.readers > 0))
  }

  async #publish(version: Version, hasReaders: boolean): Promise<Version | null> {
    const copy = version.value
    if (!(copy instanceof FileCopy) || !copy.staged) return null
    const { datum } = version
    const path = datum.path as string
    const older = this.#inPlace.get(datum)
    if (older && older !== version && older.readers > 0) return older
    const isDirectory = (await lstat(copy.path)).isDirectory()
    if (hasReaders) {
      // Its readers know it under the staged name, so that name has to stay.
      if (isDirectory) return version
      const second = `${copy.path}.published`
      await link(copy.path, second).catch(() => copyFile(copy.path, second))
      await rename(second, path)
    } else {
      if (isDirectory) await this.#makeWay(path)
      await rename(copy.path, path)
      const place = dirname(copy.path)
      copy.path = path
      copy.staged = false
      await rmdir(place).catch(() => undefined)
      await this.#leave(dirname(place))
    }
    this.#inPlace.set(datum, version)
    return null
  }

  async discard(version: Version): Promise<void> {
    const copy = version.value
    version.value = undefined
    if (!(copy instanceof FileCopy)) return
    await this.#alone(version.datum, async () => (copy.staged ? this.drop(copy.path) : undefined))
  }

  /** Deletes what an attempt left. */
  async drop(staged: string): Promise<void> {
    await rm(dirname(staged), { recursive: true, force: true })
    await this.#leave(dirname(dirname(staged)))
  }

  async remove(path: string): Promise<void> {
    await rm(path, { recursive: true, force: true })
  }

  /** Brings the last good version of each to its place, and removes the staging folders. */
  async end(data: Iterable<Datum>): Promise<void> {
    for (const datum of data) {
      const version = nearestValid(datum.current)
      if (version.state === 'ready' && !datum.removed) await this.publish(version).catch(() => null)
    }
    await Promise.all([...this.#folders.keys()].map(folder => rm(folder, { recursive: true, force: true })))
    this.#folders.clear()
  }

  /** For the end of the process, where nothing can be waited for. */
  endNow(): void {
    for (const folder of this.#folders.keys()) {
      try {
        rmSync(folder, { recursive: true, force: true })
      } catch {
        // The next thing to try is the guard.
      }
    }
  }

  #folderFor(path: string): string {
    return join(dirname(path), `.millrace-${this.#run}`)
  }

  /** A staging folder with nothing in it goes: it is in the way of those who list the user's folder. */
  async #leave(folder: string): Promise<void> {
    const left = (this.#folders.get(folder) ?? 1) - 1
    this.#folders.set(folder, left)
    if (left <= 0) await rmdir(folder).catch(() => undefined)
  }

  #alone<T>(datum: Datum, action: () => Promise<T>): Promise<T> {
    const before = this.#moving.get(datum) ?? Promise.resolve()
    const run = before.then(action)
    const ended = run.then(
      () => undefined,
      () => undefined,
    )
    this.#moving.set(datum, ended)
    return run
  }

  /** A directory cannot be renamed over one that has files in it. */
  async #makeWay(path: string): Promise<void> {
    if (!(await exists(path))) return
    const aside = join(this.#folderFor(path), `${++this.#count}-old`)
    await rename(path, aside)
    await rm(aside, { recursive: true, force: true })
  }
}

function oldest(version: Version): Version {
  let at = version
  while (at.previous) at = at.previous
  return at
}

const reasonFor = ({ datum }: Version): string => (datum.path === null ? '' : ' and no task makes it')

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch {
    return false
  }
}
