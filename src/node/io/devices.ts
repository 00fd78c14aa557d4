import { stat } from 'node:fs/promises'
import { relative } from 'node:path'
import type { Access, Version } from '../../core/data/datum.ts'
import type { Engine } from '../../core/engine.ts'
import type { Device } from '../../core/io/device.ts'
import type { Move } from '../../core/io/task-io.ts'
import type { Task } from '../../core/tasks/task.ts'
import type { Slot } from '../../model/capture/call.ts'
import { refusalOf, troubleWith } from '../../storage/device-trouble.ts'
import type { FileStore } from '../../storage/file-store.ts'
import { Location } from '../../storage/location.ts'
import { Abandoned, sizeOf } from '../../storage/mover.ts'
import { SharedPace } from '../../storage/pace.ts'
import { attemptOf, jobOf } from '../job.ts'

/** Milliseconds between two looks at what is in use. */
const SAMPLE = 100

const UNNEEDED = 'it is not needed any more'

/** Tells the core what happens on devices, and moves data between them as it says. */
export class Devices {
  readonly #engine: Engine
  readonly #files: FileStore
  readonly #now: () => number
  readonly #schedule: () => void
  readonly #moves = new Set<Promise<void>>()
  readonly #paces = new Map<string, SharedPace>()
  #isEnding = false
  #sampledAt = -Infinity
  readonly #sampled = new Map<Device, string>()

  constructor(engine: Engine, files: FileStore, now: () => number, schedule: () => void) {
    this.#engine = engine
    this.#files = files
    this.#now = now
    this.#schedule = schedule
  }

  /** Whether there are any; most runs have none. */
  get any(): boolean {
    return this.#all.length > 0
  }

  get #all(): readonly Device[] {
    return this.#engine.io.devices
  }

  /** Files that are there already count for the device that they lie on; called before a task is submitted. */
  locate(slots: readonly Slot[]): void {
    if (this.#all.length === 0) return
    for (const { datum } of slots) {
      const { current, path } = datum
      if (path === null || current.place || current.producer || current.previous || !current.settled) continue
      const device = this.#deviceOf(path)
      if (!device) continue
      this.#engine.io.locate(current, device, 0)
      if (this.#engine.io.moves.prefetches) void this.#weigh(current, path)
    }
  }

  /** Whether it is worth moving depends on its size, which is looked at aside. */
  async #weigh(version: Version, path: string): Promise<void> {
    const bytes = await sizeOf(path).catch(() => 0)
    this.#engine.io.stored(version, bytes)
    this.#schedule()
  }

  #deviceOf(path: string): Device | null {
    let best: Device | null = null
    for (const device of this.#all) {
      const within = relative(device.path, path)
      if (within.startsWith('..') || (best && best.path.length >= device.path.length)) continue
      best = device
    }
    return best
  }

  /** Says how much the task wrote or read; called when it has ended well, before its files are committed. */
  async measure(task: Task): Promise<void> {
    const { io, accesses } = task
    const isBounded = this.#engine.io.bound !== null && io?.isTemporary === true
    if (!io || !(io.device || isBounded)) return
    const paths = attemptOf(task).paths ?? []
    let read = 0
    for (const [i, path] of paths.entries()) {
      if (!path) continue
      const { write } = accesses[i] as Access
      const bytes = await sizeOf(path).catch(() => null)
      if (bytes === null) continue
      if (write) this.#engine.io.stored(write, bytes)
      else read += bytes
    }
    if (io.direction === 'read') io.bytes = read
  }

  /** What a rename has brought to the user's path is not the run's any more, and takes room from it. */
  settle(task: Task): void {
    if (!task.io?.device) return
    for (const { write } of task.accesses) {
      const copy = write?.value
      if (write && copy instanceof Location && !copy.isAside) this.#engine.io.handOver(write)
    }
  }

  /** What is wrong with the device that a failed task wrote to; null if nothing is, and the task is to blame. */
  async trouble(task: Task, error: unknown): Promise<string | null> {
    const { device, pinned, startedAt } = task.io ?? { device: null }
    // Tasks that had no other device have tried it.
    if (!device || (pinned && startedAt !== undefined && startedAt >= device.offlineSince)) return null
    const trouble = await this.#troubleWith(device, error)
    if (trouble === null) return null
    this.#fail(device, trouble)
    return `${device.name} ${trouble}`
  }

  /** In the folder of a device that was unmounted, all that fails is that files are not there. */
  async #troubleWith(device: Device, error: unknown): Promise<string | null> {
    if (await this.#files.tiers.isGone(device)) return 'is not mounted any more'
    return troubleWith(device, error)
  }

  #fail(device: Device, trouble: string): void {
    if (device.offline !== null) return
    this.#engine.io.fail(device, trouble, this.#now())
    const text = `${device.name} (${device.path}) ${trouble}: nothing more is written there`
    this.#engine.observer?.({ type: 'note', at: this.#now(), level: 'warning', text })
  }

  /** Devices that are not there are found out before the first task fails on them. */
  async check(): Promise<void> {
    for (const device of this.#all) {
      const found = await stat(device.path).catch((error: NodeJS.ErrnoException) => error)
      if (found instanceof Error) this.#fail(device, `cannot be used (${found.code})`)
      else if (!found.isDirectory()) this.#fail(device, 'is not a folder')
      else {
        await this.#files.tiers.expectThere(device).catch(() => undefined)
        const trouble = await refusalOf(device)
        if (trouble !== null) this.#fail(device, trouble)
      }
    }
  }

  /** Tells what is in use, now and then; called all the time while tasks run. */
  sample(): void {
    const { observer, io } = this.#engine
    const now = this.#now()
    if (!observer || this.#all.length === 0 || now - this.#sampledAt < SAMPLE) return
    this.#sampledAt = now
    for (const device of this.#all) {
      const { index, read, write, taken, running } = device
      const state = {
        read: read.used,
        write: write.used,
        used: taken,
        running: running.size,
        waiting: io.waitingFor(device),
      }
      const text = Object.values(state).join(' ')
      if (this.#sampled.get(device) === text) continue
      this.#sampled.set(device, text)
      observer({ type: 'device', at: now, device: index, ...state })
    }
  }

  /** Looks at what the first tasks of a kind have written so far, where the core wants to know; called all the time while tasks run. */
  look(): void {
    const { looks } = this.#engine.io.limits
    if (!looks.any) return
    for (const task of looks.due(this.#now())) void this.#lookAt(task)
  }

  async #lookAt(task: Task): Promise<void> {
    let bytes = 0
    for (const [i, path] of (jobOf(task).attempt?.paths ?? []).entries()) {
      if (!path || !task.accesses[i]?.write) continue
      bytes += await stat(path).then(
        found => (found.isFile() ? found.size : 0),
        () => 0,
      )
    }
    this.#engine.io.limits.looks.seen(task, bytes, this.#now())
    this.#schedule()
  }

  // --- moving ---

  move(move: Move): void {
    // All is brought to its place now, which must not be done twice at one time.
    if (this.#isEnding) return this.#engine.io.moveFailed(move, 'the run ends', this.#now(), 'dropped')
    const done = this.#move(move).finally(() => this.#moves.delete(done))
    this.#moves.add(done)
  }

  async #move(move: Move): Promise<void> {
    const { io } = this.#engine
    const { version, to } = move
    try {
      const where = await this.#files.places.move(version, to, this.#paceOf(move))
      if (where === null) io.moveFailed(move, UNNEEDED, this.#now(), 'dropped')
      else io.moved(move, this.#now())
      if (where === 'placed') this.#engine.io.handOver(version)
      else if (where === 'original') this.#engine.io.putBack(version)
    } catch (error) {
      if (error instanceof Abandoned) io.moveFailed(move, UNNEEDED, this.#now(), 'dropped')
      else {
        const trouble = await this.#troubleWith(to, error)
        if (trouble !== null) this.#fail(to, trouble)
        io.moveFailed(move, error instanceof Error ? error.message : String(error), this.#now())
      }
    }
    this.#schedule()
  }

  /** Moves between the same devices share what each of them may use. */
  #paceOf({ from, to }: Move): SharedPace {
    const key = `${from.index} ${to.index}`
    let pace = this.#paces.get(key)
    if (pace) return pace
    const rate = (): number => {
      if (this.#isEnding) return Infinity
      let sum = 0
      for (const move of this.#engine.io.moves.active)
        if (move.from === from && move.to === to) sum += move.rate
      return sum
    }
    this.#paces.set(key, (pace = new SharedPace(rate)))
    return pace
  }

  /** Lets moves that are on their way arrive, at full speed. */
  async end(): Promise<void> {
    this.#isEnding = true
    while (this.#moves.size > 0) await Promise.all(this.#moves)
    this.#sampledAt = -Infinity
    this.sample()
  }

  /** All files were brought to their places but for these: the devices hold nothing else any more. */
  emptied(left: readonly Version[]): void {
    for (const device of this.#all) device.used = device.handedOver = 0
    for (const { place } of left) if (place) place.device.used += place.measured ?? place.bytes
    this.#sampledAt = -Infinity
    this.sample()
  }
}
