import { hash } from 'node:crypto'
import { constants, existsSync, lstatSync } from 'node:fs'
import { copyFile, cp, link, lstat, mkdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { nearestValid } from '../core/data/datum.ts'
import type { Access, Datum, Version } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import { STAGING } from '../core/data/staging-name.ts'
import type { Device } from '../core/io/device.ts'
import { beginArrival, hurryArrival } from './arrivals.ts'
import { makeFolders } from './folders.ts'
import { elsewhere, linkFolder, overlay, usedInside, versionsInside } from './folder-view.ts'
import { UndeclaredFiles } from './undeclared-files.ts'
import { Location, Locations } from './location.ts'
import type { Stranded } from './location.ts'
import { bytesAt, exists, expectReplaceable, replace, unwritable } from './output-place.ts'
import { FileThreads } from './file-threads.ts'
import { ALWAYS_WANTED, copyDurably } from './mover.ts'
import type { Going } from './mover.ts'
import { FULL_SPEED } from './pace.ts'
import type { Pace } from './pace.ts'
import { Staging, isStaging } from './staging.ts'
import { Tiers, unusable } from './tiers.ts'
import { KeyedMutex } from './keyed-mutex.ts'
import { isKept, removeKept } from './tier-folders.ts'

/** Files that are brought to their places at one time when a run ends. */
const AT_ONCE = 4

/**
 * Versions of files. A task never writes to the path that the user named, but to one in a staging folder on
 * the same file system; what it made is renamed into place, whole, when the task has ended well. So a
 * failed, cancelled or killed task leaves its inputs and earlier outputs as they were, each attempt starts
 * from the original, and a reader of an older version is not disturbed by a newer one.
 */
export class FileStore {
  readonly #staging: Staging
  readonly #threads = new FileThreads()
  readonly tiers: Tiers
  readonly locations = new Locations()
  /** Moves of a file exclude lookups of it. */
  readonly #mutex = new KeyedMutex<Datum>()
  readonly undeclared = new UndeclaredFiles()
  /** Folders of files that were there already, and were looked through for what killed runs have left. */
  readonly #adopted = new Set<string>()
  /** Paths that are being removed, and the last version that was there. */
  readonly #removing = new Map<string, { last: Version | null; done: Promise<void> }>()
  /** Copies of folders, each for one attempt that reads it. */
  readonly #views = new Set<string>()
  /** Called with each file that is read and that no task of the run made. */
  found: ((version: Version, bytes: number) => void) | null = null

  constructor(run: string, announce: (folder: string) => void) {
    this.#staging = new Staging(run, announce)
    this.tiers = new Tiers(run, this.locations, this.#threads)
  }

  /**
   * The path of a version that is read; fails when nothing is there. If it is a copy on a device, the copy stays
   * until `tiers.unuse` is called with the path. `mustLook` is false where the caller looks at the file itself; `known` is its
   * size, where the caller knows it.
   */
  async read(version: Version, task = 0, mustLook = true, known: number | null = null): Promise<string> {
    const location = this.locations.of(version)
    location.wasRead = true
    if (location.isNamed && task > location.waitedAfter) return location.home
    return this.#find(version, mustLook, known)
  }

  /**
   * The path of a directory that is read. Where files in it that tasks wrote are elsewhere still, or staged beside it, that is a
   * copy with these files in their places, until `unuse` is called with its path.
   */
  async readFolder(version: Version, accesses: readonly Access[], task: number): Promise<string> {
    const home = version.datum.path as string
    const inside = versionsInside(home, accesses)
    for (const one of elsewhere(inside, this.locations)) if (!one.datum.temporary) await this.publish(one)
    this.tidy()
    const late = elsewhere(inside, this.locations)
    const isWhole = late.length === 0 && !this.#staging.isUsedInside(home)
    const path = await this.read(version, task)
    if (path !== home || isWhole) return path
    const place = await this.#staging.claim(dirname(home), `${basename(home)}~view`, 1)
    const view = join(place, basename(home))
    this.#views.add(view)
    await linkFolder(home, view)
    await overlay(view, home, late, this.locations)
    return view
  }

  /** An attempt does not use these paths any more. */
  async unuse(paths: readonly (string | null)[]): Promise<void> {
    for (const path of paths) if (path !== null && this.#views.delete(path)) await this.drop(path)
    await this.tiers.unuse(paths)
  }

  async #find(version: Version, mustLook = true, known: number | null = null): Promise<string> {
    await this.#mutex.pending(version.datum)
    const path = this.pathOf(version)
    if (isKept(path)) this.tiers.use(path)
    if (!mustLook && !this.found) return path
    const bytes = known ?? (await bytesAt(path))
    if (bytes === null) {
      const { device } = this.locations.of(version)
      if (device) throw lost(version, device)
      throw new MillraceError('MR_INPUT_MISSING', `${version.datum.path} does not exist${reasonFor(version)}`)
    }
    if (this.found && !(version.value instanceof Location)) this.#tell(version, bytes)
    return path
  }

  #tell(version: Version, bytes: number): void {
    const location = this.locations.of(version)
    if (location.isTold) return
    location.isTold = true
    this.found?.(version, bytes)
  }

  /** The program has seen the version in its place; `task` is the last one that it had called by then. */
  async waited(version: Version, task: number): Promise<void> {
    const location = this.locations.of(version)
    if (!location.isNamed || location.device) return
    location.waitedAfter = Math.min(location.waitedAfter, task)
    const { datum } = version
    await this.#mutex.run(datum, async () => {
      const { where } = location
      if (where.at !== 'staging' || version.readers > 0) return
      if (this.locations.file(datum).inPlace !== version) return
      location.arrive()
      await this.drop(where.path)
    })
  }

  pathOf(version: Version): string {
    const location = this.locations.of(version)
    return location.cached ?? location.path
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
    accesses: readonly Access[] = [],
  ): Promise<string> {
    const { datum } = version
    const path = datum.path as string
    this.locations.beforeWriting(datum)
    this.locations.file(datum).written.add(version)
    if (device) await this.tiers.expectThere(device)
    const staged = await this.#place(version, device, beside).catch((error: unknown) => {
      const isPath = (error as NodeJS.ErrnoException).code === 'MR_PATH'
      if (device && !isPath) throw unusable(device, error)
      return unwritable(path, error)
    })
    if (directory) await mkdir(staged)
    if (device) await this.tiers.mark(staged, device, version)
    if (!source) return staged
    const from = await this.#find(source)
    if (directory) {
      const late = from === path ? elsewhere(versionsInside(path, accesses), this.locations) : []
      const filter = (inner: string): boolean => !isStaging(basename(inner))
      await cp(from, staged, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter })
      await overlay(staged, path, late, this.locations)
    } else await copyFile(from, staged, constants.COPYFILE_FICLONE)
    await this.tiers.unuse([from])
    return staged
  }

  /** A new path to write a version to. On a device each output is committed by itself. */
  async #place({ datum, number }: Version, device: Device | null, beside: string | null): Promise<string> {
    const path = datum.path as string
    const name = basename(path)
    expectReplaceable(path, lstatSync(path, { throwIfNoEntry: false }))
    if (beside !== null && !device) return join(beside, name)
    const place = device
      ? await this.#staging.claim(device.path, `${name}~${digestOf(path)}`, number, true)
      : await this.#staging.claim(dirname(path), name, number)
    return join(place, name)
  }

  /** A place holding a copy of a file that is not a datum. */
  async copyIn(version: Version, directory: boolean, from: string): Promise<string> {
    const staged = await this.stage(version, directory, null)
    await cp(from, staged, { recursive: directory, verbatimSymlinks: true })
    return staged
  }

  /** What the version is to hold is at its place already. What a killed run has left beside it goes, which takes longer. */
  adopt(version: Version, bytes: number): void | Promise<void> {
    const folder = dirname(version.datum.path as string)
    const isNew = !this.#adopted.has(folder)
    if (isNew) this.#adopted.add(folder)
    const location = this.locations.of(version)
    location.arrive()
    location.bytes = bytes
    version.value = location
    this.locations.file(version.datum).inPlace = version
    if (isNew && existsSync(join(folder, STAGING)))
      return this.#staging.claim(folder, 'left', 1).then(place => this.#staging.remove(place))
  }

  /** To be asked for all outputs of a task before the first is committed: it makes all of them or none. */
  async expectOutput(version: Version, staged: string, task: string): Promise<void> {
    if (await exists(staged)) return
    throw new MillraceError('MR_OUTPUT_MISSING', `${task} ended without writing ${version.datum.path}`)
  }

  /** The task has written the version: it is moved to the user's path as soon as an older one there has no readers. */
  async commit(version: Version, staged: string, plainBytes: number | null = null): Promise<void> {
    const bytes = plainBytes ?? (await bytesAt(staged))
    if (bytes === null) return
    const isKept = await this.tiers.keep(version, staged)
    const location = this.locations.of(version)
    location.bytes = bytes
    if (isKept) {
      this.#staging.moved(dirname(staged))
      version.value = location
      return
    }
    location.stage(staged)
    if (version.producer) {
      location.inside = versionsInside(location.home, version.producer.accesses)
    }
    location.isPlain = plainBytes !== null
    location.isNamed = this.#isNamed(version)
    version.value = location
    // Others of a team may still fail, and then the original is wanted. Else no reader has been told the
    // staged path yet.
    if (version.team || version.datum.aside || (version.superseded && location.isNamed)) return
    await this.publish(version, false)
  }

  /**
   * Whether readers see the version under a name of its own. If that depended on whether older readers have ended, a
   * program would see another path in another run: it depends on the program alone.
   */
  #isNamed({ number, previous, producer }: Version): boolean {
    if (number !== 1 || !previous) return number > 1
    const own = producer?.accesses.filter(({ read }) => read === previous).length ?? 0
    return previous.readers > own || this.locations.of(previous).wasRead
  }

  /** Returns the version whose readers are in the way, if there is one; those of `own`, which made this one, are not. */
  async publish(
    version: Version,
    hasReaders?: boolean,
    own: readonly Access[] = [],
  ): Promise<Version | null> {
    const { inside } = this.locations.of(version)
    const inTheWay = inside.length > 0 ? await this.#placeInside(inside, own) : null
    if (inTheWay) return inTheWay
    return this.#mutex.run(version.datum, () =>
      this.#publish(version, hasReaders ?? version.readers > 0, own),
    )
  }

  /** A directory is to take the place of these: all of them must have been there, and be read no more. */
  async #placeInside(inside: readonly Version[], own: readonly Access[]): Promise<Version | null> {
    const inTheWay = usedInside(inside, own, this.locations)
    if (inTheWay) return inTheWay
    for (const version of inside) {
      const location = this.locations.of(version)
      if (version.value !== location || !location.isAside) continue
      const older = await this.publish(version, true)
      if (older) return older
      const { where } = location
      if (where.at !== 'staging') continue
      location.arrive()
      await this.drop(where.path)
    }
    return null
  }

  async #publish(version: Version, hasReaders: boolean, own: readonly Access[]): Promise<Version | null> {
    const location = this.locations.of(version)
    const { datum, value } = version
    if (value !== location || !location.isAside) return null
    const file = this.locations.file(datum)
    const { home, path } = location
    const removal = this.#removing.get(home)
    if (removal && removal.last?.datum !== datum) {
      // Its producer or readers may need the CPU that waiting here would hold.
      if (removal.last && (!removal.last.settled || removal.last.readers > 0)) return removal.last
      await removal.done
    }
    const older = file.inPlace
    const isOwn = ({ read }: Access): boolean => read === older
    if (older && older !== version && older.readers > own.filter(isOwn).length) return older
    // A task that began later has ended first: what it wrote is the newer one.
    if (older && older.number > version.number) return null
    if (location.device) {
      const isThere = older === version || (await hurryArrival(location))
      // It may have moved to another device meanwhile.
      if (!isThere) await this.#bring(location.path, home, FULL_SPEED, ALWAYS_WANTED)
      file.inPlace = version
      await this.tiers.published(version)
      return null
    }
    const isDirectory = !location.isPlain && (await lstat(path)).isDirectory()
    const place = dirname(path)
    // Staged beside it, its folder is there; staged on a device, it may not be.
    if (dirname(dirname(place)) !== dirname(home)) await makeFolders(dirname(home))
    if (older === version) return null
    if (hasReaders || (location.isNamed && !isDirectory)) {
      // Its readers know it under the staged name, so that name has to stay.
      if (isDirectory) return version
      const second = `${path}.published`
      await link(path, second).catch(() => copyFile(path, second))
      await replace(second, home)
    } else {
      if (isDirectory) await this.#makeWay(home)
      await replace(path, home, this.#staging.isQuick(dirname(place)))
      location.arrive()
      if (await this.#staging.clear(place)) this.undeclared.gone(place)
      else this.undeclared.found(place, home)
    }
    file.inPlace = version
    await this.tiers.published(version)
    return null
  }

  /** Copies what is on another device to its place: whole, or not at all. */
  async #bring(from: string, path: string, pace: Pace, going: Going): Promise<boolean> {
    const place = await this.#staging.claim(dirname(path), basename(path), 1)
    const aside = join(place, basename(path))
    try {
      await copyDurably(this.#threads, from, aside, pace, going)
      if (!going.isWanted()) return false
      if ((await lstat(aside)).isDirectory()) await this.#makeWay(path)
      await replace(aside, path)
      await this.#threads.call('syncFolder', dirname(path))
      return true
    } finally {
      await this.#staging.remove(place)
    }
  }

  /**
   * Moves a version to another device, to its place if that is there; readers are not disturbed. Says where it
   * is now, 'original' if only a copy of the user's file was dropped, or null if there was nothing to move any more.
   */
  async move(version: Version, to: Device, pace: Pace): Promise<'kept' | 'placed' | 'original' | null> {
    if (await this.tiers.uncache(version)) return 'original'
    const location = this.locations.of(version)
    if (!location.device || !(await this.#mayPlace(version, to))) {
      return (await this.tiers.relocate(version, to, pace)) ? 'kept' : null
    }
    const { datum } = version
    const file = this.locations.file(datum)
    const wanted = (): boolean => version.value === location && !version.superseded && !datum.removed
    const bring = (going: Going): Promise<boolean> => this.#bring(location.path, location.home, pace, going)
    // Two who bring it to its place at one time are in each other's way.
    await this.#mutex.idle(datum)
    const isThere =
      file.inPlace === version ||
      (await beginArrival(location, () => wanted() && this.#isUnread(datum), bring))
    if (!isThere) return null
    return this.#mutex.run(datum, async () => {
      file.inPlace = version
      await this.tiers.published(version)
      await this.tiers.forget(version, location)
      location.arrive()
      return 'placed' as const
    })
  }

  async #mayPlace(version: Version, to: Device): Promise<boolean> {
    const { datum } = version
    const isLast = !version.superseded && !version.team && !datum.removed
    return isLast && this.#isUnread(datum) && (await this.tiers.isOn(to, datum.path as string))
  }

  /** What is at the user's path now has no readers. */
  #isUnread(datum: Datum): boolean {
    return (this.locations.file(datum).inPlace?.readers ?? 0) === 0
  }

  async discard(version: Version): Promise<void> {
    const location = version.value
    version.value = undefined
    this.locations.file(version.datum).written.delete(version)
    await this.tiers.uncache(version)
    if (!(location instanceof Location)) return
    await this.#mutex.run(version.datum, async () => {
      const { where } = location
      if (where.at === 'device') await this.tiers.forget(version, location)
      else if (where.at === 'staging') await this.drop(where.path)
      location.leave()
    })
  }

  /** Deletes what an attempt left. An abandoned attempt may still be writing. */
  async drop(staged: string, mayBeWritten = false): Promise<void> {
    if (isKept(staged)) return this.tiers.condemn(staged)
    await this.#staging.remove(dirname(staged), mayBeWritten)
  }

  /** Moves a file from a staging folder to the user's. */
  async bringHome(from: string, path: string): Promise<void> {
    await makeFolders(dirname(path))
    if ((await lstat(from)).isDirectory()) await this.#makeWay(path)
    await replace(from, path)
  }

  /** Staging folders that are empty go. */
  tidy(): void {
    this.#staging.tidy()
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
    const version = this.locations.file(datum).inPlace
    return version && version.readers > 0 ? version : null
  }

  /**
   * Brings the last good version of each to its place, and removes the staging folders. Returns what could not
   * be brought there, and stays where it is; and names what is removed without being asked for.
   */
  async end(data: Iterable<Datum>, say: (text: string) => void = () => {}): Promise<Stranded[]> {
    const stranded: Stranded[] = []
    const rest = data[Symbol.iterator]()
    const bring = async (): Promise<void> => {
      for (let next = rest.next(); !next.done; next = rest.next()) {
        const version = nearestValid(next.value.current)
        if (next.value.aside) this.undeclared.declare(next.value.path as string)
        if (version.state !== 'ready' || next.value.removed || next.value.aside) continue
        await this.publish(version).catch((error: unknown) => {
          const { isAside, path, home } = this.locations.of(version)
          if (version.value === undefined || !isAside) return
          // The user removed the folder that it was to come to, and was in: it is not missed.
          const isUnwanted = !existsSync(path) && !existsSync(dirname(home))
          if (!isUnwanted) stranded.push({ version, path, error })
        })
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, bring))
    for (const { version } of stranded) this.undeclared.declare(version.datum.path as string)
    const left = await this.undeclared.describe()
    if (left !== null) say(left)
    const isNeeded = (folder: string): boolean => stranded.some(({ path }) => path.startsWith(`${folder}/`))
    this.#staging.end(place => stranded.some(({ path }) => dirname(path) === place))
    // On a device that has become read-only it stays; a later run sees that all of it has been brought home.
    await Promise.allSettled(
      this.tiers.folders.all.map(folder => removeKept(folder, name => isNeeded(join(folder, name)))),
    )
    await this.#threads.close()
    return stranded
  }

  /** For the end of the process, where nothing can be waited for. */
  endNow(): void {
    this.#staging.end()
  }

  /** A directory cannot be renamed over one that has files in it. */
  async #makeWay(path: string): Promise<void> {
    if (!(await exists(path))) return
    const place = await this.#staging.claim(dirname(path), `${basename(path)}~old`, 1)
    await rename(path, join(place, basename(path)))
    await this.#staging.remove(place)
  }
}

/** Files of one name in several folders are apart on a device. */
const digestOf = (path: string): string => hash('sha256', path).slice(0, 12)

const lost = ({ datum }: Version, { name, path }: Device): MillraceError =>
  new MillraceError('MR_DEVICE', `${datum.path} was kept on ${name}, and is not in ${path} any more`, {
    hint: 'Bring the device back, or run the task that makes the file again.',
  })

const reasonFor = ({ datum }: Version): string => (datum.path === null ? '' : ' and no task makes it')
