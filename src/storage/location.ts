import type { Datum, Version } from '../core/data/datum.ts'
import { oldest } from '../core/data/datum.ts'
import type { Device } from '../core/io/device.ts'
import type { Arrival } from './arrivals.ts'
import type { Away } from './away.ts'

/** Where the bytes of a version of a file or directory are. A device may be one of another node: `device.node` says which. */
export type Where =
  /** At the path that the user named, or not made yet. */
  | { readonly at: 'place' }
  /** In a staging folder beside its place: an older version has readers there, or its own readers know it by this path. */
  | { readonly at: 'staging'; readonly path: string }
  /** On a device, until it is wanted at its place. */
  | { readonly at: 'device'; readonly path: string; readonly device: Device }
  /** Deleted: nothing reads it any more. */
  | { readonly at: 'gone' }

const PLACE: Where = { at: 'place' }
const GONE: Where = { at: 'gone' }
const NONE: readonly Version[] = []

/**
 * All that is known of where one version of a file or directory is. It is the `value` of versions that tasks of the run have
 * committed. What the core counts for it on a device is `version.place`.
 */
export class Location {
  /** The path that the user named. */
  readonly home: string
  where: Where = PLACE
  /** The attempt that writes it now does so here, on this device. */
  writing: { readonly path: string; readonly device: Device } | null = null
  /** A copy that is faster to read; nothing is lost with it. */
  cached: string | null = null
  /** In memory: here it grows, or grew, for those that read it meanwhile. */
  growing: string | null = null
  /** It is being copied to its place, as fast as the core allows. */
  arrival: Arrival | null = null
  /** It is on nodes only; `where` says where it comes to when it is wanted here. */
  away: Away | null = null
  /** It was on nodes only, and cannot be made again. */
  isLost = false
  /** It is on its way from a node. */
  coming: Promise<void> | null = null
  /** As it was committed; 0 for folders. */
  bytes = 0
  /** Of a directory: files in it that were parameters of tasks before, and go with what was there. */
  inside: readonly Version[] = NONE
  /** It was seen to be a plain file. */
  isPlain = false
  /** Readers see it in its staging folder, also when it is in its place as well. */
  isNamed = false
  /** Its path was given to a task that reads it. */
  wasRead = false
  /** Observers know of it, although no task of the run made it. */
  isTold = false
  /** The program has waited for it: tasks that are called after this one find it in its place for sure. */
  waitedAfter = Infinity
  /** What the runtime knows of its content, where results are kept. */
  known: unknown = null

  constructor(home: string) {
    this.home = home
  }

  get path(): string {
    const { where } = this
    return where.at === 'staging' || where.at === 'device' ? where.path : this.home
  }

  /** The device that it is kept on until it is wanted at its place. */
  get device(): Device | null {
    return this.where.at === 'device' ? this.where.device : null
  }

  /** It exists, and only elsewhere than at its place; or there by a second name. */
  get isAside(): boolean {
    return this.where.at === 'staging' || this.where.at === 'device'
  }

  stage(path: string): void {
    this.where = { at: 'staging', path }
  }

  keepOn(device: Device, path: string): void {
    this.where = { at: 'device', path, device }
  }

  arrive(): void {
    this.where = PLACE
  }

  leave(): void {
    this.where = GONE
  }

  /** It is here, or is not wanted any more. */
  notAway(): void {
    const { away } = this
    this.away = null
    away?.over()
  }
}

/** What is known of a file, whatever its version. */
class FileRecord {
  /** The version that is at the user's path; null until a task writes the file. */
  inPlace: Version | null = null
  #written: Set<Version> | null = null
  #onDevices: Set<Version> | null = null

  /** Versions that tasks write, or wrote and others may read. */
  get written(): Set<Version> {
    return (this.#written ??= new Set())
  }

  /** Committed versions on devices: the newest one is what a killed run leaves to its user. */
  get onDevices(): Set<Version> {
    return (this.#onDevices ??= new Set())
  }
}

/** The one owner of where files are: a `Location` for each version, and which version is at the user's path. */
export class Locations {
  readonly #versions = new WeakMap<Version, Location>()
  readonly #files = new WeakMap<Datum, FileRecord>()

  of(version: Version): Location {
    if (version.value instanceof Location) return version.value
    let location = this.#versions.get(version)
    if (!location) this.#versions.set(version, (location = new Location(version.datum.path as string)))
    return location
  }

  file(datum: Datum): FileRecord {
    let record = this.#files.get(datum)
    if (!record) this.#files.set(datum, (record = new FileRecord()))
    return record
  }

  /** To be called before the file is written: nothing of it is committed, so the oldest version is from before the run. */
  beforeWriting(datum: Datum): void {
    this.file(datum).inPlace ??= oldest(datum.current)
  }
}

/** What was committed, as far as it has been measured. */
export const bytesIn = ({ value, place }: Version): number =>
  (value instanceof Location ? value.bytes : 0) || (place?.measured ?? 0)

/** A version that could not be brought to its place, and where it is. */
export interface Stranded {
  version: Version
  path: string
  error: unknown
}
