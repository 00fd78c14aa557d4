import { copyFile, link, lstat, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Access, Datum, Version } from '../core/data/datum.ts'
import type { Device } from '../core/io/device.ts'
import { beginArrival, hurryArrival } from './arrivals.ts'
import type { FileThreads } from './file-threads.ts'
import { usedInside } from './folder-view.ts'
import { makeFolders } from './folders.ts'
import type { KeyedMutex } from './keyed-mutex.ts'
import type { Locations } from './location.ts'
import { ALWAYS_WANTED, copyDurably } from './mover.ts'
import type { Going } from './mover.ts'
import { exists, replace } from './output-place.ts'
import { FULL_SPEED } from './pace.ts'
import type { Pace } from './pace.ts'
import type { Removals } from './removals.ts'
import type { Staging } from './staging.ts'
import type { Tiers } from './tiers.ts'
import type { UndeclaredFiles } from './undeclared-files.ts'

/** What it shares with the rest of the file store. */
interface Parts {
  readonly locations: Locations
  readonly staging: Staging
  readonly tiers: Tiers
  readonly threads: FileThreads
  readonly mutex: KeyedMutex<Datum>
  readonly undeclared: UndeclaredFiles
  readonly removals: Removals
  /** Brings a version that is on nodes only. */
  here(version: Version): Promise<void>
}

/** Brings versions to the paths that the user named: whole, by a rename, and when an older one there has no readers. */
export class UserPlaces {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Returns the version whose readers are in the way, if there is one; those of `own`, which made this one, are not. */
  async publish(
    version: Version,
    hasReaders?: boolean,
    own: readonly Access[] = [],
  ): Promise<Version | null> {
    const { locations, mutex } = this.#parts
    await this.#parts.here(version)
    const { inside } = locations.of(version)
    const inTheWay = inside.length > 0 ? await this.#placeInside(inside, own) : null
    if (inTheWay) return inTheWay
    return mutex.run(version.datum, () => this.#publish(version, hasReaders ?? version.readers > 0, own))
  }

  /** A directory is to take the place of these: all of them must have been there, and be read no more. */
  async #placeInside(inside: readonly Version[], own: readonly Access[]): Promise<Version | null> {
    const { locations, staging } = this.#parts
    const inTheWay = usedInside(inside, own, locations)
    if (inTheWay) return inTheWay
    for (const version of inside) {
      const location = locations.of(version)
      if (version.value !== location || !location.isAside) continue
      const older = await this.publish(version, true)
      if (older) return older
      const { where } = location
      if (where.at !== 'staging') continue
      location.arrive()
      await staging.remove(dirname(where.path))
    }
    return null
  }

  async #publish(version: Version, hasReaders: boolean, own: readonly Access[]): Promise<Version | null> {
    const { locations, tiers, staging, undeclared, removals } = this.#parts
    const location = locations.of(version)
    const { datum, value } = version
    if (value !== location || !location.isAside) return null
    const file = locations.file(datum)
    const { home, path } = location
    const removal = removals.at(home)
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
      await tiers.published(version)
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
      await replace(path, home, staging.isQuick(dirname(place)))
      location.arrive()
      if (await staging.clear(place)) undeclared.gone(place)
      else undeclared.found(place, home)
    }
    file.inPlace = version
    await tiers.published(version)
    return null
  }

  /** The program has seen the version in its place; `task` is the last one that it had called by then. */
  async waited(version: Version, task: number): Promise<void> {
    const { locations, mutex, staging } = this.#parts
    const location = locations.of(version)
    if (!location.isNamed || location.device) return
    location.waitedAfter = Math.min(location.waitedAfter, task)
    const { datum } = version
    await mutex.run(datum, async () => {
      const { where } = location
      if (where.at !== 'staging' || version.readers > 0) return
      if (locations.file(datum).inPlace !== version) return
      location.arrive()
      await staging.remove(dirname(where.path))
    })
  }

  /** Copies what is on another device to its place: whole, or not at all. */
  async #bring(from: string, path: string, pace: Pace, going: Going): Promise<boolean> {
    const { staging, threads } = this.#parts
    const place = await staging.claim(dirname(path), basename(path), 1)
    const aside = join(place, basename(path))
    try {
      await copyDurably(threads, from, aside, pace, going)
      if (!going.isWanted()) return false
      if ((await lstat(aside)).isDirectory()) await this.#makeWay(path)
      await replace(aside, path)
      await threads.call('syncFolder', dirname(path))
      return true
    } finally {
      await staging.remove(place)
    }
  }

  /**
   * Moves a version to another device, to its place if that is there; readers are not disturbed. Says where it
   * is now, 'original' if only a copy of the user's file was dropped, or null if there was nothing to move any more.
   */
  async move(version: Version, to: Device, pace: Pace): Promise<'kept' | 'placed' | 'original' | null> {
    const { tiers, locations, mutex } = this.#parts
    if (await tiers.uncache(version)) return 'original'
    const location = locations.of(version)
    if (!location.device || !(await this.#mayPlace(version, to))) {
      return (await tiers.relocate(version, to, pace)) ? 'kept' : null
    }
    const { datum } = version
    const file = locations.file(datum)
    const wanted = (): boolean => version.value === location && !version.superseded && !datum.removed
    const bring = (going: Going): Promise<boolean> => this.#bring(location.path, location.home, pace, going)
    // Two copies to one place at one time would be in each other's way.
    await mutex.idle(datum)
    const isThere =
      file.inPlace === version ||
      (await beginArrival(location, () => wanted() && this.#isUnread(datum), bring))
    if (!isThere) return null
    return mutex.run(datum, async () => {
      file.inPlace = version
      await tiers.published(version)
      await tiers.forget(version, location)
      location.arrive()
      return 'placed' as const
    })
  }

  async #mayPlace(version: Version, to: Device): Promise<boolean> {
    const { datum } = version
    const isLast = !version.superseded && !version.team && !datum.removed
    return isLast && this.#isUnread(datum) && (await this.#parts.tiers.isOn(to, datum.path as string))
  }

  /** What is at the user's path now has no readers. */
  #isUnread(datum: Datum): boolean {
    return (this.#parts.locations.file(datum).inPlace?.readers ?? 0) === 0
  }

  /** Moves a file from a staging folder to the user's. */
  async bringHome(from: string, path: string): Promise<void> {
    await makeFolders(dirname(path))
    if ((await lstat(from)).isDirectory()) await this.#makeWay(path)
    await replace(from, path)
  }

  /** The version that is at the user's path now, if it has readers. */
  readAt(datum: Datum): Version | null {
    const version = this.#parts.locations.file(datum).inPlace
    return version && version.readers > 0 ? version : null
  }

  /** A directory cannot be renamed over one that has files in it. */
  async #makeWay(path: string): Promise<void> {
    const { staging } = this.#parts
    if (!(await exists(path))) return
    const place = await staging.claim(dirname(path), `${basename(path)}~old`, 1)
    await rename(path, join(place, basename(path)))
    await staging.remove(place)
  }
}
