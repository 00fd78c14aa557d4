import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Datum, Version } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import type { Device } from '../core/io/device.ts'
import { FileCopy } from './file-copy.ts'
import { copyDurably, syncFolder } from './mover.ts'
import type { Pace } from './pace.ts'
import { PART, TierFolders } from './tier-folders.ts'

interface Staged {
  device: Device
  version: Version
}

/**
 * Versions of files on devices other than the one where the user wants them. Whoever was given the path of
 * such a copy may use it to the end: a copy that has moved on is deleted after its last user.
 */
export class Tiers {
  readonly folders: TierFolders
  readonly #staged = new Map<string, Staged>()
  /** Committed versions per datum: the newest one is what a killed run leaves to its user. */
  readonly #kept = new Map<Datum, Map<FileCopy, Version>>()
  /** Copies of files that are also where the user has them: nothing is lost with them. */
  readonly #cached = new Map<Version, string>()
  readonly #users = new Map<string, number>()
  readonly #condemned = new Set<string>()
  readonly #sameDevice = new Map<string, boolean>()
  /** What the system calls each device. */
  readonly #numbers = new Map<Device, number>()

  constructor(run: string) {
    this.folders = new TierFolders(run)
  }

  /**
   * Throws if something else is at the place of the device than at first: when it is unmounted, its folder is still
   * there, on another device, which nobody meant to be filled.
   */
  async expectThere(device: Device): Promise<void> {
    const { dev } = await stat(device.path)
    const known = this.#numbers.get(device)
    if (known === undefined) this.#numbers.set(device, dev)
    else if (known !== dev) {
      const error = new Error(`${device.path} is on another device than before`)
      throw unusable(device, Object.assign(error, { code: 'ENODEV', path: device.path }))
    }
  }

  // --- writing ---

  async mark(staged: string, device: Device, version: Version): Promise<void> {
    this.#staged.set(staged, { device, version })
    await this.folders.mark(staged, { path: version.datum.path as string, version: version.id })
  }

  stagedOn(staged: string): Device | null {
    return this.#staged.get(staged)?.device ?? null
  }

  forgetStaged(staged: string): void {
    this.#staged.delete(staged)
  }

  /** Commits what was written; null if a rename can bring it to its place as well. */
  async keep(version: Version, staged: string): Promise<FileCopy | null> {
    const { device } = this.#staged.get(staged) as Staged
    this.#staged.delete(staged)
    if (await this.isOn(device, version.datum.path as string)) {
      await this.folders.unmark(staged)
      return null
    }
    const copy = new FileCopy(await this.folders.keep(staged, device), true, device)
    this.#remember(version, copy)
    return copy
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

  /** Where a copy of the file is that is faster to read, if there is one. */
  cachedPath(version: Version): string | undefined {
    return this.#cached.size === 0 ? undefined : this.#cached.get(version)
  }

  use(path: string): void {
    this.#users.set(path, (this.#users.get(path) ?? 0) + 1)
  }

  /** A task that was given these paths has ended. */
  async unuse(paths: readonly (string | null)[]): Promise<void> {
    for (const path of paths) {
      const users = path === null ? undefined : this.#users.get(path)
      if (path === null || users === undefined) continue
      if (users > 1) this.#users.set(path, users - 1)
      else {
        this.#users.delete(path)
        if (this.#condemned.delete(path)) await this.folders.drop(path)
      }
    }
  }

  // --- moving ---

  /** Copies the version to a device and goes on from there; returns false if it was not wanted any more. */
  async relocate(version: Version, device: Device, pace: Pace): Promise<boolean> {
    const known = version.value instanceof FileCopy ? version.value : null
    // It is beside its place, where others still read what was there before: it goes there soon, and nowhere else.
    if (known?.staged && !known.tier) return false
    const copy = known?.tier ? known : null
    const from = copy?.path ?? (version.datum.path as string)
    const wanted = (): boolean =>
      copy ? version.value === copy : !version.superseded && !version.datum.removed
    await this.expectThere(device)
    const number = copy ? basename(dirname(from)) : `c${version.id}`
    const place = join(await this.folders.prepare(device), number)
    const part = join(`${place}${PART}`, basename(from))
    try {
      await mkdir(dirname(part), { recursive: true })
      if (copy) {
        await this.folders.mark(part, { path: version.datum.path as string, version: version.id })
      }
      await copyDurably(from, part, pace, { isWanted: wanted, isUrgent: () => false })
      if (!wanted()) return false
      await rename(dirname(part), place)
      await syncFolder(dirname(place))
    } finally {
      await rm(`${place}${PART}`, { recursive: true, force: true })
    }
    const path = join(place, basename(from))
    if (!copy) this.#cached.set(version, path)
    else if (wanted()) {
      copy.path = path
      copy.tier = device
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
    if (this.#users.has(path)) this.#condemned.add(path)
    else await this.folders.drop(path)
  }

  /** The copy that only makes reading faster is not needed. */
  async uncache(version: Version): Promise<boolean> {
    const path = this.#cached.get(version)
    if (path === undefined) return false
    this.#cached.delete(version)
    await this.condemn(path)
    return true
  }

  /** A version is where the user wants it: of older ones none is to come there any more. */
  async published(version: Version): Promise<void> {
    for (const [copy, other] of this.#kept.get(version.datum) ?? []) {
      if (other.id < version.id) await this.folders.unmark(copy.path)
    }
  }

  async forget(version: Version, copy: FileCopy): Promise<void> {
    const kept = this.#kept.get(version.datum)
    kept?.delete(copy)
    if (kept?.size === 0) this.#kept.delete(version.datum)
    if (copy.tier) await this.condemn(copy.path)
  }

  #remember(version: Version, copy: FileCopy): void {
    let kept = this.#kept.get(version.datum)
    if (!kept) this.#kept.set(version.datum, (kept = new Map()))
    kept.set(copy, version)
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
