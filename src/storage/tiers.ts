import { stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Version } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import type { Device } from '../core/io/device.ts'
import type { Location, Locations } from './location.ts'
import type { FileThreads } from './file-threads.ts'
import { copyDurably } from './mover.ts'
import type { Pace } from './pace.ts'
import { PART, TierFolders } from './tier-folders.ts'

/** A copy on a device whose path was given to tasks. */
interface UsedCopy {
  users: number
  /** It is deleted after its last user. */
  isCondemned: boolean
}

/**
 * Versions of files on devices other than the one where the user wants them. A user of the path of
 * such a copy may use it to the end: a copy that has moved on is deleted after its last user.
 */
export class Tiers {
  readonly folders: TierFolders
  readonly #locations: Locations
  readonly #threads: FileThreads
  readonly #used = new Map<string, UsedCopy>()
  readonly #sameDevice = new Map<string, boolean>()
  /** What the system calls each device. */
  readonly #numbers = new Map<Device, number>()

  constructor(run: string, locations: Locations, threads: FileThreads) {
    this.#threads = threads
    this.folders = new TierFolders(run, threads)
    this.#locations = locations
  }

  /**
   * Throws if something else is at the place of the device than at first: when it is unmounted, its folder is still
   * there, on another device, which was not meant to be filled.
   */
  async expectThere(device: Device): Promise<void> {
    if (!this.#numbers.has(device)) this.#numbers.set(device, (await stat(device.path)).dev)
    else if (await this.isGone(device)) {
      const error = new Error(`${device.path} is on another device than before`)
      throw unusable(device, Object.assign(error, { code: 'ENODEV', path: device.path }))
    }
  }

  /** Something else is at the place of the device than at first, or nothing. */
  async isGone(device: Device): Promise<boolean> {
    const known = this.#numbers.get(device)
    const found = await stat(device.path).catch(() => null)
    return known !== undefined && found?.dev !== known
  }

  // --- writing ---

  async mark(staged: string, device: Device, version: Version): Promise<void> {
    this.#locations.of(version).writing = { path: staged, device }
    await this.folders.mark(staged, { path: version.datum.path as string, version: version.id })
  }

  /** Commits what was written to a device; false if it was not, or if a rename can bring it to its place as well. */
  async keep(version: Version, staged: string): Promise<boolean> {
    const location = this.#locations.of(version)
    const { writing } = location
    if (writing?.path !== staged) return false
    const { device } = writing
    location.writing = null
    if (await this.isOn(device, location.home)) {
      await this.folders.unmark(staged)
      return false
    }
    location.keepOn(device, await this.folders.keep(staged, device))
    this.#locations.file(version.datum).onDevices.add(version)
    return true
  }

  /** Whether a path is on the file system of the device. */
  async isOn(device: Device, path: string): Promise<boolean> {
    const key = `${device.path}\n${dirname(path)}`
    const known = this.#sameDevice.get(key)
    if (known !== undefined) return known
    const [tier, target] = await Promise.all([stat(device.path), nearestFolder(dirname(path))])
    const same = tier.dev === target.dev
    this.#sameDevice.set(key, same)
    return same
  }

  // --- reading ---

  use(path: string): void {
    const used = this.#used.get(path)
    if (used) used.users++
    else this.#used.set(path, { users: 1, isCondemned: false })
  }

  /** A task that was given these paths has ended. */
  async unuse(paths: readonly (string | null)[]): Promise<void> {
    for (const path of paths) {
      const used = path === null ? undefined : this.#used.get(path)
      if (path === null || !used || --used.users > 0) continue
      this.#used.delete(path)
      if (used.isCondemned) await this.folders.drop(path)
    }
  }

  // --- moving ---

  /** Copies the version to a device and goes on from there; returns false if it was not wanted any more. */
  async relocate(version: Version, device: Device, pace: Pace): Promise<boolean> {
    const location = this.#locations.of(version)
    // It is beside its place, where others still read what was there before: it goes there soon, and nowhere else.
    if (location.where.at === 'staging') return false
    const isOnDevice = location.device !== null
    const from = location.path
    const wanted = (): boolean =>
      isOnDevice ? version.value === location : !version.superseded && !version.datum.removed
    await this.expectThere(device)
    const number = isOnDevice ? basename(dirname(from)) : `c${version.id}`
    const place = join(await this.folders.prepare(device), number)
    const part = join(`${place}${PART}`, basename(from))
    try {
      await this.#threads.call('makeFolder', dirname(part))
      if (isOnDevice) {
        await this.folders.mark(part, { path: version.datum.path as string, version: version.id })
      }
      await copyDurably(this.#threads, from, part, pace, { isWanted: wanted, isUrgent: () => false })
      if (!wanted()) return false
      await this.#threads.call('rename', dirname(part), place)
      await this.#threads.call('syncFolder', dirname(place))
    } finally {
      await this.#threads.call('remove', `${place}${PART}`)
    }
    const path = join(place, basename(from))
    if (!isOnDevice) location.cached = path
    else if (wanted()) {
      location.keepOn(device, path)
      await this.condemn(from)
    } else {
      await this.folders.drop(path)
      return false
    }
    return true
  }

  /** Deletes a copy, after its last user. */
  async condemn(path: string): Promise<void> {
    await this.folders.unmark(path)
    const used = this.#used.get(path)
    if (used) used.isCondemned = true
    else await this.folders.drop(path)
  }

  /** The copy that only makes reading faster is not needed. */
  async uncache(version: Version): Promise<boolean> {
    const location = this.#locations.of(version)
    const { cached } = location
    if (cached === null) return false
    location.cached = null
    await this.condemn(cached)
    return true
  }

  /** A version is where the user wants it: of older ones none is to come there any more. */
  async published(version: Version): Promise<void> {
    for (const other of this.#locations.file(version.datum).onDevices) {
      if (other.id < version.id) await this.folders.unmark(this.#locations.of(other).path)
    }
  }

  /** The version is not wanted on its device any more. */
  async forget(version: Version, { device, path }: Location): Promise<void> {
    this.#locations.file(version.datum).onDevices.delete(version)
    if (device) await this.condemn(path)
  }
}

/** Says which device it is that failed. */
export function unusable({ name, path }: Device, cause: unknown): MillraceError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new MillraceError('MR_DEVICE', `${name} (${path}) cannot be written: ${why}`, { cause })
}

async function nearestFolder(path: string): Promise<{ dev: number }> {
  for (let at = path; ; at = dirname(at)) {
    const found = await stat(at).catch(() => null)
    if (found) return found
    if (at === dirname(at)) throw new Error(`there is no folder above ${path}`)
  }
}
