import { hash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  rmdirSync,
  statfsSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs'
import { mkdir, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { STAGING } from '../core/data/staging-name.ts'
import { makeFoldersNow } from './folders.ts'
import { hasEnded, hasProcesses, thisProcess } from './owner.ts'
import { SpareFolders, quietly } from './spare-folders.ts'

/**
 * Where tasks write, beside the files that the user named:
 *
 *     .millrace-new/KEY/NAME   what a task writes; KEY is NAME, with a number where that is not enough
 *     .millrace-new/.run-ID    a link that leads nowhere: names the process of a run that writes here
 *     .millrace-new/.spare-…   a folder of a run that becomes the next KEY: see spare-folders.ts
 *
 * The folder has the same name in every run, so that programs which write their command line into their results
 * write the same each time. Several runs may use it at one time: making KEY is the claim, and the run that comes
 * second takes another one. On devices of the machine description KEY is made there each time. What a killed run left is removed by its watchdog, or by the next run that is alone there.
 */
const RUN = '.run-'
const LEFT = '.left-'

/** Longer names are cut, so that there is room behind them; bytes. */
const LONGEST = 200
/** A folder that is empty stays this long: the next task often comes at once. Milliseconds. */
const IDLE = 50
/** Others may remove an empty folder just before something is made in it, but not for ever. */
const TRIES = 50

/** File systems on which a call takes less time than handing it to another thread, as statfs names them. */
const QUICK = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x2fc12fc1, 0x794c7630, 0xf2f52010])

interface Folder {
  /** Places of this run in it. */
  places: number
  isQuick: boolean
  readonly spares: SpareFolders
}

export class Staging {
  readonly #run: string
  readonly #announce: (folder: string) => void
  readonly #owner: string
  /** The folders in which this run is known. */
  readonly #folders = new Map<string, Folder>()
  /** By device. */
  readonly #spares = new Map<number, SpareFolders>()
  readonly #announced = new Set<string>()
  readonly #claimed = new Set<string>()
  /** Attempts that were given up may still write here: these places are not used again. */
  readonly #spoiled = new Set<string>()
  readonly #empty = new Set<string>()
  #tidying: NodeJS.Timeout | null = null

  constructor(run: string, announce: (folder: string) => void) {
    this.#run = run
    this.#announce = announce
    const { pid, started, host } = thisProcess()
    this.#owner = `${pid} ${started} ${host}`
  }

  /**
   * Makes a folder for one task in the staging folder of `parent`. Its name is the same in every run for the same
   * name and number, unless another run, or an attempt that was given up, uses that one now. `isMoved`: it will be
   * moved elsewhere as a whole.
   */
  async claim(parent: string, name: string, number: number, isMoved = false): Promise<string> {
    const key = keyOf(name, number)
    const folder = this.#enter(parent)
    for (let other = 0, tries = TRIES; ;) {
      const place = join(folder, other === 0 ? key : `${key}.${other}`)
      if (this.#claimed.has(place) || this.#spoiled.has(place)) {
        other++
        continue
      }
      this.#claimed.add(place)
      try {
        await this.#make(folder, place, isMoved)
        return place
      } catch (error) {
        this.#claimed.delete(place)
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EEXIST' || code === 'ENOTEMPTY' || code === 'ENOTDIR') {
          if (!this.#takeIfLeft(place)) other++
        } else if (code === 'ENOENT' && tries-- > 0) this.#register(folder)
        else {
          this.#leave(folder)
          throw error
        }
      }
    }
  }

  async #make(folder: string, place: string, isMoved: boolean): Promise<void> {
    const known = this.#folders.get(folder)
    if (!known?.isQuick) await mkdir(place, 0o700)
    else if (isMoved) mkdirSync(place, 0o700)
    else known.spares.become(place)
  }

  /** Calls on this file system are best made at once. */
  isQuick(folder: string): boolean {
    return this.#folders.get(folder)?.isQuick ?? false
  }

  /** Whether tasks write, or find what was written, in a staging folder inside this folder. */
  isUsedInside(folder: string): boolean {
    for (const [path, { places }] of this.#folders)
      if (places > 0 && path.startsWith(`${folder}/`)) return true
    return false
  }

  /** Removes a place with all that is in it. One that an attempt may go on writing to is not used again. */
  async remove(place: string, mayBeWritten = false): Promise<void> {
    if (mayBeWritten) this.#spoiled.add(place)
    await rm(place, { recursive: true, force: true })
    this.#release(place)
  }

  /** What was in the place has left it; false when something else is there. */
  async clear(place: string): Promise<boolean> {
    const known = this.#folders.get(dirname(place))
    try {
      if (!known?.isQuick) await rmdir(place)
      else if (!known.spares.takeBack(place)) return false
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') return false
    }
    this.#release(place)
    return true
  }

  /** The place has been moved elsewhere, with what is in it. */
  moved(place: string): void {
    this.#release(place)
  }

  /** Removes folders with nothing in them: they are in the way of those who list the user's folder. */
  tidy(): void {
    if (this.#tidying) clearTimeout(this.#tidying)
    this.#tidying = null
    for (const folder of this.#empty) if (this.#folders.get(folder)?.places === 0) this.#unregister(folder)
    this.#empty.clear()
  }

  /** The run ends: what it has left goes, but for places that are needed. */
  end(isNeeded: (place: string) => boolean = () => false): void {
    this.tidy()
    for (const place of this.#claimed) {
      if (!isNeeded(place)) quietly(() => rmSync(place, { recursive: true, force: true }))
    }
    for (const folder of this.#folders.keys()) this.#unregister(folder)
    this.#claimed.clear()
  }

  // --- folders ---

  #enter(parent: string): string {
    const usual = join(parent, STAGING)
    const folder = this.#folders.has(usual) ? usual : this.#register(usual)
    const known = this.#folders.get(folder)
    if (known) known.places++
    return folder
  }

  /** Makes the folder if it is not there, and this run known in it; another one if this is of another user. */
  #register(folder: string): string {
    if (!this.#announced.has(folder)) {
      this.#announced.add(folder)
      this.#announce(folder)
    }
    makeFoldersNow(dirname(folder))
    let isNew = true
    for (let tries = TRIES; ; tries--) {
      try {
        isNew = makeOwn(folder)
        symlinkSync(this.#owner, this.#markIn(folder))
        break
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'EEXIST') break
        if (code === 'EACCES' && !isNew && basename(folder) === STAGING) {
          return this.#register(`${folder}-${process.getuid?.() ?? 0}`)
        }
        // Another run has just removed the folder, which was empty.
        if (code !== 'ENOENT' || tries === 0) throw error
      }
    }
    if (!this.#folders.has(folder)) {
      const { dev } = lstatSync(folder)
      const spares = this.#spares.get(dev) ?? new SpareFolders(this.#run)
      this.#spares.set(dev, spares)
      this.#folders.set(folder, { places: 0, isQuick: isQuick(folder), spares })
    }
    if (!isNew) this.#removeLeft(folder)
    return folder
  }

  #release(place: string): void {
    if (this.#claimed.delete(place)) this.#leave(dirname(place))
  }

  #leave(folder: string): void {
    const known = this.#folders.get(folder)
    if (!known || --known.places > 0) return
    this.#empty.add(folder)
    this.#tidying ??= setTimeout(() => this.tidy(), IDLE).unref()
  }

  #unregister(folder: string): void {
    this.#folders.get(folder)?.spares.remove(folder)
    this.#folders.delete(folder)
    quietly(() => this.#removeLeft(folder))
    quietly(() => unlinkSync(this.#markIn(folder)))
    quietly(() => rmdirSync(folder))
  }

  #markIn(folder: string): string {
    return join(folder, RUN + this.#run)
  }

  // --- what runs that were killed have left ---

  /**
   * Removes what no living run has in the folder. A run is known there before it makes a place: if the places are
   * listed first and the runs then, the run of each place is seen.
   */
  #removeLeft(folder: string): void {
    const names = namesIn(folder).filter(name => !name.startsWith(RUN))
    if (names.length === 0 || !this.#isAlone(folder)) return
    for (const name of names) this.#takeAway(join(folder, name))
  }

  /** Whether the place is free now: it was of a run that has ended. */
  #takeIfLeft(place: string): boolean {
    const found = lstatSync(place, { throwIfNoEntry: false })
    if (!found) return true
    return this.#isAlone(dirname(place)) && this.#takeAway(place, found.ino)
  }

  /** Renamed first: of two runs that find it, the second must not remove what the first has made there since. */
  #takeAway(place: string, ino = lstatSync(place, { throwIfNoEntry: false })?.ino): boolean {
    if (this.#claimed.has(place)) return false
    const away = join(dirname(place), LEFT + this.#run)
    try {
      if (basename(place).startsWith(LEFT)) rmSync(place, { recursive: true, force: true })
      else {
        renameSync(place, away)
        if (lstatSync(away).ino !== ino) {
          renameSync(away, place)
          return false
        }
        rmSync(away, { recursive: true, force: true })
      }
      return true
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT'
    }
  }

  /** No other living run writes in the folder. Those that have ended are forgotten. */
  #isAlone(folder: string): boolean {
    let isAlone = true
    for (const name of namesIn(folder)) {
      if (!name.startsWith(RUN) || name === RUN + this.#run) continue
      const mark = join(folder, name)
      if (isOfEnded(mark, name.slice(RUN.length))) quietly(() => unlinkSync(mark))
      else isAlone = false
    }
    return isAlone
  }
}

/** Whether a name in a folder is that of a staging folder. */
export const isStaging = (name: string): boolean => name.startsWith(STAGING)

function keyOf(name: string, number: number): string {
  const isLong = Buffer.byteLength(name) > LONGEST
  const digest = isLong ? hash('sha256', name).slice(0, 16) : ''
  const start = Buffer.from(name).subarray(0, LONGEST).toString('latin1')
  const key = isLong ? `${start.replace(/[^ -.0-~]/g, '')}~${digest}` : name
  return number > 1 ? `${key}~${number}` : key
}

/** False if it was there. */
function makeOwn(folder: string): boolean {
  try {
    mkdirSync(folder, 0o700)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

/** A mark that cannot be read is taken for that of a living run. */
function isOfEnded(mark: string, run: string): boolean {
  try {
    const [pid, started = '', host = ''] = readlinkSync(mark).split(' ')
    return hasEnded({ pid: Number(pid), started, host }) && !hasProcesses(run)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

function isQuick(folder: string): boolean {
  try {
    return QUICK.has(statfsSync(folder).type)
  } catch {
    return false
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
