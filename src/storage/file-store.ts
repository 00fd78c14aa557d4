import { hash } from 'node:crypto'
import { constants, existsSync, lstatSync } from 'node:fs'
import { copyFile, cp, mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { nearestValid } from '../core/data/datum.ts'
import type { Access, Datum, Version } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import { STAGING } from '../core/data/staging-name.ts'
import type { Device } from '../core/io/device.ts'
import { elsewhere, linkFolder, overlay, versionsInside } from './folder-view.ts'
import { UndeclaredFiles } from './undeclared-files.ts'
import { Location, Locations } from './location.ts'
import type { Stranded } from './location.ts'
import type { Away } from './away.ts'
import { bytesAt, exists, expectReplaceable, unwritable } from './output-place.ts'
import { FileThreads } from './file-threads.ts'
import { Staging, isStaging } from './staging.ts'
import { Tiers, unusable } from './tiers.ts'
import { KeyedMutex } from './keyed-mutex.ts'
import { Removals } from './removals.ts'
import { UserPlaces } from './user-places.ts'
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
  readonly removals = new Removals()
  readonly places: UserPlaces
  /** Copies of folders, each for one attempt that reads it. */
  readonly #views = new Set<string>()
  /** Called with each file that is read and that no task of the run made. */
  found: ((version: Version, bytes: number) => void) | null = null

  constructor(run: string, announce: (folder: string) => void) {
    this.#staging = new Staging(run, announce)
    this.tiers = new Tiers(run, this.locations, this.#threads)
    this.places = new UserPlaces({
      locations: this.locations,
      staging: this.#staging,
      tiers: this.tiers,
      threads: this.#threads,
      mutex: this.#mutex,
      undeclared: this.undeclared,
      removals: this.removals,
      here: version => this.here(version),
    })
  }

  /** What is known of a version that is on nodes only; null of all others. */
  awayOf({ value }: Version): Away | null {
    return value instanceof Location ? value.away : null
  }

  /**
   * Where a task on a node finds a version that is on nodes only; null where it has to be here. With a directory come the files
   * in it that other tasks wrote.
   */
  pathThere(version: Version, accesses: readonly Access[]): string | null {
    const { value } = version
    if (!(value instanceof Location) || !value.away) return null
    if (versionsInside(value.home, accesses).length > 0) return null
    value.wasRead = true
    return value.isNamed ? value.path : value.home
  }

  /** Brings the version from the node that has it, if it is on nodes only. */
  async here(version: Version): Promise<void> {
    const location = version.value instanceof Location ? version.value : null
    while (location?.away) await (location.coming ??= this.#bring(version, location, location.away))
    if (!location?.isLost) return
    throw new MillraceError(
      'MR_DATA_LOST',
      `${location.home} was on a node that was lost, and what it was made of is another file now`,
    )
  }

  async #bring(version: Version, location: Location, away: Away): Promise<void> {
    try {
      await away.bring(location.path)
      if (location.away !== away) return
      location.notAway()
    } finally {
      location.coming = null
    }
    const { superseded, datum } = version
    if (!superseded && !datum.removed && !datum.aside) await this.places.publish(version)
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
    await this.here(version)
    return this.#find(version, mustLook, known)
  }

  /**
   * The path of a directory that is read. Where files in it that tasks wrote are elsewhere still, or staged beside it, that is a
   * copy with these files in their places, until `unuse` is called with its path.
   */
  async readFolder(version: Version, accesses: readonly Access[], task: number): Promise<string> {
    const home = version.datum.path as string
    const inside = versionsInside(home, accesses)
    for (const one of elsewhere(inside, this.locations))
      if (!one.datum.temporary) await this.places.publish(one)
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
    await this.here(source)
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
    await this.places.publish(version, false)
  }

  /** The task has written the version, and it stays on the node where it did. */
  commitAway(version: Version, staged: string, away: Away): void {
    const location = this.locations.of(version)
    location.stage(staged)
    location.away = away
    location.bytes = away.bytes
    // One that is made again has the name that it had.
    location.isNamed ||= this.#isNamed(version)
    version.value = location
  }

  /** The nodes that had the version are gone, and it is to be made again, unless it is lost for good. */
  async lost(location: Location, isForGood = false): Promise<void> {
    const { where } = location
    location.isLost = isForGood
    location.notAway()
    location.arrive()
    if (where.at === 'staging') await this.#staging.remove(dirname(where.path))
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

  async discard(version: Version): Promise<void> {
    const location = version.value
    version.value = undefined
    this.locations.file(version.datum).written.delete(version)
    await this.tiers.uncache(version)
    if (!(location instanceof Location)) return
    const { away } = location
    location.notAway()
    away?.drop()
    await location.coming?.catch(() => undefined)
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

  /** Staging folders that are empty go. */
  tidy(): void {
    this.#staging.tidy()
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
        await this.places.publish(version).catch((error: unknown) => {
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
}

/** Files of one name in several folders are apart on a device. */
const digestOf = (path: string): string => hash('sha256', path).slice(0, 12)

const lost = ({ datum }: Version, { name, path }: Device): MillraceError =>
  new MillraceError('MR_DEVICE', `${datum.path} was kept on ${name}, and is not in ${path} any more`, {
    hint: 'Bring the device back, or run the task that makes the file again.',
  })

const reasonFor = ({ datum }: Version): string => (datum.path === null ? '' : ' and no task makes it')
