import { constants, existsSync, rmSync } from 'node:fs'
import { copyFile, cp, link, lstat, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { nearestValid, oldest } from '../core/data.ts'
import type { Access, Datum, Version } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import type { Device } from '../core/io/device.ts'
import { Arrivals } from './arrivals.ts'
import { FileCopy } from './file-copy.ts'
import type { Stranded } from './file-copy.ts'
import { makeFolders } from './folders.ts'
import { Litter } from './litter.ts'
import { bytesAt, exists, renameTo, unwritable } from './output-place.ts'
import { ALWAYS_WANTED, copyDurably, syncFolder } from './mover.ts'
import type { Going } from './mover.ts'
import { FULL_SPEED } from './pace.ts'
import type { Pace } from './pace.ts'
import { Tiers, unusable } from './tiers.ts'
import { Turns } from './turns.ts'
import { isKept, removeKept } from './tier-folders.ts'

export { FileCopy } from './file-copy.ts'

/** Files that are brought to their places at one time when a run ends. */
const AT_ONCE = 4

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
  readonly tiers: Tiers
  /** The version that is at the user's path. */
  readonly #inPlace = new WeakMap<Datum, Version>()
  /** What is being done with a file: it moves, so nobody may look for it meanwhile. */
  readonly #turns = new Turns<Datum>()
  readonly #arrivals = new Arrivals()
  readonly #litter = new Litter()
  /** Paths that are being removed, and the last version that was there. */
  readonly #removing = new Map<string, { last: Version | null; done: Promise<void> }>()
  #count = 0
  /** Is told of each file that is read and that no task of the run made. */
  found: ((version: Version, bytes: number) => void) | null = null
  readonly #told = new WeakSet<Version>()

  constructor(run: string, announce: (folder: string) => void) {
    this.#run = run
    this.#announce = announce
    this.tiers = new Tiers(run)
  }

  /**
   * The path of a version that is read; fails when nothing is there. If it is a copy on a device, the copy stays
   * until `tiers.unuse` is told the path. Whoever looks at it anyway need not have it looked for, and says how large
   * it is, where that is known.
   */
  async read(version: Version, mustLook = true, known: number | null = null): Promise<string> {
    await this.#turns.now(version.datum)
    const path = this.pathOf(version)
    if (isKept(path)) this.tiers.use(path)
    if (!mustLook && !this.found) return path
    const bytes = known ?? (await bytesAt(path))
    if (bytes === null) {
      const { tier } = version.value instanceof FileCopy ? version.value : { tier: null }
      if (tier) throw lost(version, tier)
      throw new MillraceError('MR_INPUT_MISSING', `${version.datum.path} does not exist${reasonFor(version)}`)
    }
    if (this.found && !(version.value instanceof FileCopy)) this.#tell(version, bytes)
    return path
  }

  #tell(version: Version, bytes: number): void {
    if (this.#told.has(version)) return
    this.#told.add(version)
    this.found?.(version, bytes)
  }

  pathOf(version: Version): string {
    const fast = this.tiers.cachedPath(version)
    if (fast !== undefined) return fast
    return version.value instanceof FileCopy ? version.value.path : (version.datum.path as string)
  }

  /**
   * A place to write a version to, holding what is in `source` when that is given: on the device, or beside the
   * place that the user named, or `beside` other outputs of its task.
   */
  async stage(
    version: Version,
    directory: boolean,
    source: Version | null,
    device: Device | null = null,
    beside: string | null = null,
  ): Promise<string> {
    const { datum } = version
    const path = datum.path as string
    // Nothing of it is committed before it is staged, so the oldest version is the one from before the run.
    if (!this.#inPlace.has(datum)) this.#inPlace.set(datum, oldest(datum.current))
    if (device) await this.tiers.expectThere(device)
    const folder = device ? this.tiers.folders.staging(device) : this.#folderFor(path)
    // On a device, each output is committed by itself.
    const staged = this.#place(folder, path, device ? null : beside)
    await makeFolders(directory ? staged : dirname(staged)).catch((error: unknown) => {
      if (device) throw unusable(device, error)
      return unwritable(path, error)
    })
    if (device) await this.tiers.mark(staged, device, version)
    if (!source) return staged
    const from = await this.read(source)
    if (directory) {
      const own = `.millrace-${this.#run}`
      const filter = (inner: string): boolean => basename(inner) !== own
      await cp(from, staged, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter })
    } else await copyFile(from, staged, constants.COPYFILE_FICLONE)
    await this.tiers.unuse([from])
    return staged
  }

  /** A new place in a staging folder. */
  #place(folder: string, path: string, beside: string | null = null): string {
    if (!this.#folders.has(folder)) this.#announce(folder)
    this.#folders.set(folder, (this.#folders.get(folder) ?? 0) + 1)
    return join(beside ?? join(folder, String(++this.#count)), basename(path))
  }

  /** A place holding a copy of a file that is not a datum. */
  async copyIn(version: Version, directory: boolean, from: string): Promise<string> {
    const staged = await this.stage(version, directory, null)
    await cp(from, staged, { recursive: directory, verbatimSymlinks: true })
    return staged
  }

  /** To be asked for all outputs of a task before the first is committed: it makes all of them or none. */
  async expectOutput(version: Version, staged: string, task: string): Promise<void> {
    if (await exists(staged)) return
    throw new MillraceError('MR_OUTPUT_MISSING', `${task} ended without writing ${version.datum.path}`)
  }

  /** The task has written the version: it is moved to the user's path as soon as nobody reads an older one there. */
  async commit(version: Version, staged: string, plainBytes: number | null = null): Promise<void> {
    const bytes = plainBytes ?? (await bytesAt(staged))
    if (bytes === null) return
    const kept = this.tiers.stagedOn(staged) && (await this.tiers.keep(version, staged))
    if (kept) {
      await this.#leave(dirname(dirname(staged)))
      kept.bytes = bytes
      version.value = kept
      return
    }
    const copy = new FileCopy(staged, true)
    copy.bytes = bytes
    copy.isPlain = plainBytes !== null
    version.value = copy
    // Others of a team may still fail, and then the original is wanted. Else no reader has been told the
    // staged path yet.
    if (version.superseded || version.team || version.datum.temporary) return
    await this.publish(version, false)
  }

  /** Returns the version whose readers are in the way, if there is one; those of `own`, which made this one, are not. */
  publish(version: Version, hasReaders?: boolean, own: readonly Access[] = []): Promise<Version | null> {
    return this.#turns.take(version.datum, () =>
      this.#publish(version, hasReaders ?? version.readers > 0, own),
    )
  }

  async #publish(version: Version, hasReaders: boolean, own: readonly Access[]): Promise<Version | null> {
    const copy = version.value
    if (!(copy instanceof FileCopy) || !copy.staged) return null
    const { datum } = version
    const path = datum.path as string
    const removal = this.#removing.get(path)
    if (removal && removal.last?.datum !== datum) {
      // Whoever makes or reads it may need the CPU that waiting here would hold.
      if (removal.last && (!removal.last.settled || removal.last.readers > 0)) return removal.last
      await removal.done
    }
    const older = this.#inPlace.get(datum)
    const isOwn = ({ read }: Access): boolean => read === older
    if (older && older !== version && older.readers > own.filter(isOwn).length) return older
    if (copy.tier) {
      const isThere = older === version || (await this.#arrivals.hurry(version))
      if (!isThere) await this.#bring(copy.path, path, FULL_SPEED, ALWAYS_WANTED)
      this.#inPlace.set(datum, version)
      await this.tiers.published(version)
      return null
    }
    const isDirectory = !copy.isPlain && (await lstat(copy.path)).isDirectory()
    // Staged beside it, its folder is there; staged on a device, it may not be.
    if (!copy.path.startsWith(`${this.#folderFor(path)}/`)) await makeFolders(dirname(path))
    if (hasReaders) {
      // Its readers know it under the staged name, so that name has to stay.
      if (isDirectory) return version
      const second = `${copy.path}.published`
      await link(copy.path, second).catch(() => copyFile(copy.path, second))
      await renameTo(second, path)
    } else {
      if (isDirectory) await this.#makeWay(path)
      await renameTo(copy.path, path)
      const place = dirname(copy.path)
      copy.path = path
      copy.staged = false
      await rmdir(place).then(
        () => this.#litter.gone(place),
        (error: unknown) => this.#litter.found(place, path, error),
      )
      await this.#leave(dirname(place))
    }
    this.#inPlace.set(datum, version)
    await this.tiers.published(version)
    return null
  }

  /** Copies what is on another device to its place: whole, or not at all. */
  async #bring(from: string, path: string, pace: Pace, going: Going): Promise<boolean> {
    const aside = this.#place(this.#folderFor(path), path)
    try {
      await makeFolders(dirname(aside))
      await copyDurably(from, aside, pace, going)
      if (!going.isWanted()) return false
      if ((await lstat(aside)).isDirectory()) await this.#makeWay(path)
      await renameTo(aside, path)
      await syncFolder(dirname(path))
      return true
    } finally {
      await rm(dirname(aside), { recursive: true, force: true })
      await this.#leave(dirname(dirname(aside)))
    }
  }

  /**
   * Moves a version to another device, to its place if that is there; readers are not disturbed. Says where it
   * is now, 'original' if only a copy of the user's file was dropped, or null if there was nothing to move any more.
   */
  async move(version: Version, to: Device, pace: Pace): Promise<'kept' | 'placed' | 'original' | null> {
    if (await this.tiers.uncache(version)) return 'original'
    const copy = version.value instanceof FileCopy ? version.value : null
    if (!copy?.tier || !(await this.#mayPlace(version, to))) {
      return (await this.tiers.relocate(version, to, pace)) ? 'kept' : null
    }
    const { datum } = version
    const wanted = (): boolean => version.value === copy && !version.superseded && !datum.removed
    const bring = (going: Going): Promise<boolean> =>
      this.#bring(copy.path, datum.path as string, pace, going)
    // Two who bring it to its place at one time are in each other's way.
    await this.#turns.over(datum)
    const isThere =
      this.#inPlace.get(datum) === version ||
      (await this.#arrivals.begin(version, () => wanted() && this.#isUnread(datum), bring))
    if (!isThere) return null
    return this.#turns.take(datum, async () => {
      this.#inPlace.set(datum, version)
      await this.tiers.published(version)
      await this.tiers.forget(version, copy)
      copy.path = datum.path as string
      copy.staged = false
      copy.tier = null
      return 'placed' as const
    })
  }

  async #mayPlace(version: Version, to: Device): Promise<boolean> {
    const { datum } = version
    const isLast = !version.superseded && !version.team && !datum.removed
    return isLast && this.#isUnread(datum) && (await this.tiers.isOn(to, datum.path as string))
  }

  /** Nobody reads what is at the user's path now. */
  #isUnread(datum: Datum): boolean {
    return (this.#inPlace.get(datum)?.readers ?? 0) === 0
  }

  async discard(version: Version): Promise<void> {
    const copy = version.value
    version.value = undefined
    await this.tiers.uncache(version)
    if (!(copy instanceof FileCopy)) return
    await this.#turns.take(version.datum, async () => {
      if (copy.tier) await this.tiers.forget(version, copy)
      else if (copy.staged) await this.drop(copy.path)
    })
  }

  /** Deletes what an attempt left. */
  async drop(staged: string): Promise<void> {
    if (isKept(staged)) return this.tiers.condemn(staged)
    this.tiers.forgetStaged(staged)
    await rm(dirname(staged), { recursive: true, force: true })
    await this.#leave(dirname(dirname(staged)))
  }

  /** Deletes what is at a path, after `gone`: what is written there by tasks that were called later comes after that. */
  async remove(path: string, last: Version | null, gone: Promise<void>): Promise<void> {
    const before = this.#removing.get(path)?.done
    const removed = Promise.all([before, gone]).then(() => rm(path, { recursive: true, force: true }))
    const done = removed.then(
      () => undefined,
      () => undefined,
    )
    const removal = { last, done }
    this.#removing.set(path, removal)
    await done
    if (this.#removing.get(path) === removal) this.#removing.delete(path)
    await removed
  }

  /** The version that is at the user's path now, if it has readers. */
  readAt(datum: Datum): Version | null {
    const version = this.#inPlace.get(datum)
    return version && version.readers > 0 ? version : null
  }

  /**
   * Brings the last good version of each to its place, and removes the staging folders. Returns what could not
   * be brought there, and stays where it is; and says what is removed though nobody asked for it.
   */
  async end(data: Iterable<Datum>, say: (text: string) => void = () => {}): Promise<Stranded[]> {
    const stranded: Stranded[] = []
    const rest = data[Symbol.iterator]()
    const bring = async (): Promise<void> => {
      for (let next = rest.next(); !next.done; next = rest.next()) {
        const version = nearestValid(next.value.current)
        if (next.value.temporary) this.#litter.declare(next.value.path as string)
        if (version.state !== 'ready' || next.value.removed || next.value.temporary) continue
        await this.publish(version).catch((error: unknown) => {
          const copy = version.value
          if (!(copy instanceof FileCopy) || !copy.staged) return
          // Someone removed the folder that it was to come to, and was in: nobody misses it.
          const isUnwanted = !existsSync(copy.path) && !existsSync(dirname(version.datum.path ?? ''))
          if (!isUnwanted) stranded.push({ version, path: copy.path, error })
        })
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, bring))
    for (const { version } of stranded) this.#litter.declare(version.datum.path as string)
    const left = await this.#litter.describe()
    if (left !== null) say(left)
    const isNeeded = (folder: string): boolean => stranded.some(({ path }) => path.startsWith(`${folder}/`))
    const staging = [...this.#folders.keys()].filter(folder => !isNeeded(folder))
    // On a device that has become read-only it stays; whoever looks at it later sees that all of it has been brought home.
    await Promise.allSettled([
      ...staging.map(folder => rm(folder, { recursive: true, force: true })),
      ...this.tiers.folders.all.map(folder => removeKept(folder, name => isNeeded(join(folder, name)))),
    ])
    this.#folders.clear()
    return stranded
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

  /** A directory cannot be renamed over one that has files in it. */
  async #makeWay(path: string): Promise<void> {
    if (!(await exists(path))) return
    const aside = join(this.#folderFor(path), `${++this.#count}-old`)
    await rename(path, aside)
    await rm(aside, { recursive: true, force: true })
  }
}

const lost = ({ datum }: Version, { name, path }: Device): MillraceError =>
  new MillraceError('MR_DEVICE', `${datum.path} was kept on ${name}, and is not in ${path} any more`, {
    hint: 'Bring the device back, or run the task that makes the file again.',
  })

const reasonFor = ({ datum }: Version): string => (datum.path === null ? '' : ' and no task makes it')
