import type { AccessMode, Datum, Version } from '../data/datum.ts'
import type { Observer } from '../events.ts'
import type { Node, NodeDescription } from '../schedule/machine.ts'
import type { Demand } from '../tasks/demand.ts'
import type { Task, TaskSpec } from '../tasks/task.ts'
import { Bound, temporaryOutputs } from './bound.ts'
import type { Device } from './device.ts'
import type { IoNode } from './io-node.ts'
import { Estimates } from './estimates.ts'
import { findIoPolicy } from './io-policy.ts'
import type { IoPolicy, IoRound } from './io-policy.ts'
import { IoQueue } from './io-queue.ts'
import type { LearningWay } from './trial-registry.ts'
import { DeviceLimits } from './device-limits.ts'
import { Moves } from './moves.ts'
import { refuseIo } from './refuse.ts'
import { Standstill } from './standstill.ts'
import { Storage } from './storage.ts'
import { IoReports } from './io-reports.ts'
import type { Opening, Spot } from './storage.ts'
import { bytesRead, describeIo, inputDevice, writtenFiles } from './task-io.ts'
import type { Move, MoveInstruction, TaskIo } from './task-io.ts'

export interface IoOptions {
  /** fcfs, priority or backfill. @default fcfs */
  ioPolicy?: string
  /** Data that no task will read move to lower layers: when no I/O task is there, or always in what is left over. @default off */
  flush?: 'off' | 'idle' | 'always'
  /** Data that ready tasks will read move to higher layers. @default false */
  prefetch?: boolean
  /** Bytes that temporary data may take at one time, on all devices together. */
  maxIntermediate?: number
  /** How limits are learned: by a search while tasks come and go, or in epochs as the paper does. @default search */
  learning?: LearningWay
  /** Share of the tasks of a kind that the search may go on for. @default 1 */
  learningShare?: number
  /** What earlier runs have learned, as `export` gave it. */
  learned?: readonly Learned[]
}

/** What is known of a kind of task on a device: how long one took at each limit that was tried. */
export interface Learned {
  kind: string
  device: string
  bandwidth: number
  /** Tasks that it took to learn it. */
  spent: number
  trials: { bandwidth: number; concurrency: number; mean: number }[]
}

interface AccessRequest {
  datum: Datum
  mode: AccessMode
}

/** What the engine does with what is decided here. */
export interface IoHost {
  start(task: Task): void
  resume(task: Task): void
  /** Sets a COMMUTATIVE task aside whose datum another one holds; false if no task does. */
  park(task: Task): boolean
  instruct(instruction: MoveInstruction): void
}

/** All that the core decides about I/O: which I/O task starts, on which layer, with how much bandwidth. */
export class IoCore {
  readonly storage: Storage
  readonly queue: IoQueue
  readonly limits: DeviceLimits
  readonly moves: Moves
  /** Holds back producers of temporary data; null without a bound. */
  readonly bound: Bound | null
  readonly standstill: Standstill
  readonly estimates = new Estimates()
  readonly #policy: IoPolicy
  readonly #reports: IoReports
  readonly #observer: () => Observer | null
  /** Tells the engine that a version may be discarded again, if it is to be. */
  readonly #freed: (version: Version) => void
  /** Versions made since the last decision that have no readers. */
  readonly #fresh: Version[] = []
  /** Demands that some device can meet: there may be many tasks of a demand, and many nodes. */
  readonly #possible = new WeakSet<Demand>()
  /** Blocked I/O tasks that could go on. */
  readonly #resuming = new Set<Task>()

  constructor(
    nodes: readonly Node[],
    descriptions: readonly NodeDescription[],
    options: IoOptions,
    observer: () => Observer | null,
    freed: (version: Version) => void,
  ) {
    this.#freed = freed
    this.storage = new Storage(nodes, descriptions, {
      for: (task, io, device) => this.limits.for(task, io, device),
      least: task => this.limits.least(task),
      slots: device => this.limits.slots(device),
    })
    this.#policy = findIoPolicy(options.ioPolicy ?? 'fcfs')
    this.queue = new IoQueue(this.devices.length, this.#policy.order)
    this.limits = new DeviceLimits(this.queue, options, observer, () => this.devices)
    const bound = boundOf(options.maxIntermediate, this.devices)
    this.bound = bound === Infinity ? null : new Bound(bound, task => this.storage.knownSizeOf(task))
    this.moves = new Moves(this.storage, options, observer)
    this.#observer = observer
    this.#reports = new IoReports(observer)
    this.standstill = new Standstill(this, observer)
  }

  get devices(): readonly Device[] {
    return this.storage.devices
  }

  // --- for the engine ---

  /** Throws if no device could ever do what the task asks for. */
  check(spec: TaskSpec, accesses: readonly AccessRequest[]): void {
    const { storage } = spec.demand
    if (!storage) return
    if (!this.#possible.has(spec.demand)) {
      refuseIo(spec.kind.name, spec.demand, this.storage.nodes)
      this.#possible.add(spec.demand)
    }
    const isTemporary = ({ datum, mode }: AccessRequest): boolean => datum.temporary && mode !== 'in'
    if (accesses.some(isTemporary)) this.bound?.check(spec.kind.name, storage.size)
    this.limits.submitted(spec.kind, storage.bandwidth)
  }

  /** Whether the task has to do with storage, beside what it asks for: it makes data that are bounded. */
  concerns(task: Task): boolean {
    if (task.demand.io || task.demand.storage) return true
    return this.bound !== null && temporaryOutputs(task).length > 0
  }

  /** `home`: the node that holds what it reads, if one does. */
  ready(task: Task, home: number | null): void {
    task.io = describeIo(task, this.devices, home)
    if (!task.demand.io) {
      this.standstill.computing.add(task)
      return
    }
    this.queue.push(task, task.io)
    this.limits.arrived(task)
  }

  /** A ready I/O task will not start after all. */
  unready(task: Task): void {
    this.queue.remove(task)
  }

  /** Nothing of this concerns a run without I/O, which is not to pay for it. */
  get isIdle(): boolean {
    if (this.bound || this.moves.isOn || this.limits.isLearning) return false
    return this.queue.size === 0 && this.#resuming.size === 0
  }

  /** Comes first in each decision. */
  refresh(now: number): void {
    this.limits.refresh(now)
  }

  /** Returns true if compute tasks that were refused before could start now. */
  decide(now: number, host: IoHost): boolean {
    if (this.#resuming.size > 0) this.#resume(host)
    if (this.queue.size > 0) this.#startSome(now, host)
    const hasDropped = this.limits.dropIdleClaims()
    if (hasDropped && this.queue.size > 0) this.#startSome(now, host)
    if (this.queue.size > 0) this.#reports.waiting(this, now)
    if (this.bound) {
      this.#reports.held(this, now)
      this.#reports.intermediate(this.bound, now)
    }
    if (this.moves.isOn) {
      for (const version of this.#fresh.splice(0)) this.moves.unread(version)
      const isQuiet = this.queue.size === 0 && !this.isBusy
      this.moves.decide(now, isQuiet, host.instruct)
    }
    return hasDropped
  }

  #startSome(now: number, host: IoHost): void {
    const { queue, storage, estimates } = this
    const movedAway: Task[] = []
    const round: IoRound = {
      queue,
      devices: this.devices,
      find: (task, avoid) => {
        const io = task.io as TaskIo
        if (host.park(task)) {
          queue.remove(task)
          return null
        }
        if (this.bound && !this.bound.allows(task)) return null
        if (this.moves.hasMoved && this.#hasMovedAway(task, io)) {
          movedAway.push(task)
          return null
        }
        return storage.find(task, io, null, avoid ?? null)
      },
      start: (task, spot) => {
        queue.remove(task)
        task.node = spot.node.node.index
        task.implementation.begun++
        task.lane = this.take(task, spot, now)
        host.start(task)
      },
      bandwidthOf: task => this.#bandwidthOf(task),
      openings: task => this.#openings(task),
      isTypical: task => (this.bound?.allows(task) ?? true) && !movedAway.includes(task),
      isBusy: () => this.isBusy,
      hasSlots: () => storage.hasSlots(),
      couldUse: (task, device) => storage.couldUse(task, task.io as TaskIo, device),
      hopes: task => storage.hopes(task, task.io as TaskIo),
      estimate: (task, device) => estimates.mean(task.kind, device),
      untilFirstEnds: device => estimates.untilFirstEnds(device, now),
    }
    this.#policy.run(round)
    this.#startFirst(round)
    while (movedAway.length > 0) {
      for (const task of movedAway.splice(0)) {
        queue.remove(task)
        task.io = describeIo(task, this.devices, (task.io as TaskIo).home)
        queue.push(task, task.io)
      }
      this.#policy.run(round)
    }
  }

  /** Temporary data must also fit into the bound, which is one for all devices. */
  #openings(task: Task): Opening[] {
    const openings = this.storage.openings(task, task.io as TaskIo)
    if (!this.bound || !task.io?.isTemporary) return openings
    const { spare } = this.bound
    return openings.map(one => ({ ...one, room: Math.min(one.room, spare) }))
  }

  /** The bound holds back the first of a class, behind which the one may wait that must be able to start. */
  #startFirst(round: IoRound): void {
    for (;;) {
      const first = this.bound?.first()
      if (!first?.io?.queuedIn || first.state !== 'ready') return
      const spot = round.find(first)
      if (!spot) return
      round.start(first, spot)
    }
  }

  /** What it reads lies on another device than when it became ready. */
  #hasMovedAway(task: Task, io: TaskIo): boolean {
    if (io.direction === 'read')
      return io.pinned !== null && !task.demand.storage?.device && inputDevice(task) !== io.pinned
    return io.source !== null && inputDevice(task) !== io.source
  }

  /** Whether anything is under way on any device that will end by itself. */
  get isBusy(): boolean {
    return this.storage.isBusy
  }

  /** What the task asks for, or what tasks of its kind have been found to need on the highest layer. */
  #bandwidthOf({ kind, demand, io }: Task): number {
    const bandwidth = demand.storage?.bandwidth
    if (typeof bandwidth === 'number') return bandwidth
    if (bandwidth === 'adaptive' || bandwidth == null) return 0
    const top = io?.pinned ?? this.devices.find(({ rank }) => rank === 0)
    return (top && this.limits.choiceOf(kind, top)?.bandwidth) ?? 0
  }

  /** A place for a compute task that also asks for storage; null if its node has none now. */
  findOn(task: Task, node: Node): Spot | null {
    return this.storage.find(task, task.io as TaskIo, this.storage.nodes[node.index] as IoNode)
  }

  /** The task starts there; returns its lane if it is an I/O task. */
  take(task: Task, spot: Spot, now: number): number {
    const io = task.io as TaskIo
    const lane = this.storage.take(task, io, spot, now)
    this.standstill.computing.delete(task)
    this.limits.started(task, io, now)
    if (io.device) this.#reports.device(io.device, this.waitingFor, now)
    return lane
  }

  /** The attempt is over. `took` is negative if nothing of it is kept, infinite if its time says nothing. */
  ended(task: Task, took: number, now: number): void {
    const io = task.io as TaskIo
    this.#resuming.delete(task)
    const ran = io.holds || task.state === 'blocked'
    this.storage.pause(task, io)
    const written = this.storage.settle(task, io, took >= 0)
    if (took >= 0) for (const version of writtenFiles(task)) this.#made(version)
    if (!ran) return
    if (io.device) this.#reports.device(io.device, this.waitingFor, now)
    const isMeasured = took >= 0 && took < Infinity
    if (isMeasured && io.device) this.estimates.record(task.kind, io.device, took)
    const moved = io.bytes ?? (io.direction === 'read' ? bytesRead(task) : written)
    // Who moves data without files says how much by its size.
    this.limits.ended(task, io, took, moved || (task.demand.storage?.size ?? 0), now)
  }

  /** The version is being committed: its readers are known by now, or come later. */
  #made(version: Version): void {
    if (version.readers === 0 && this.moves.isOn) this.#fresh.push(version)
  }

  /** No task reads the version any more. */
  unread(version: Version): void {
    this.moves.unread(version)
  }

  blocked(task: Task): void {
    this.storage.pause(task, task.io as TaskIo)
  }

  /** A compute task that waited for others has its lane back; false if its bandwidth is not free. */
  goOn(task: Task): boolean {
    return this.storage.goOn(task, task.io as TaskIo)
  }

  unblocked(task: Task): void {
    this.#resuming.add(task)
  }

  #resume(host: IoHost): void {
    for (const task of this.#resuming) {
      if (!this.storage.goOn(task, task.io as TaskIo)) continue
      this.#resuming.delete(task)
      host.resume(task)
    }
  }

  // --- for the runtime and the simulator ---

  /** Ready tasks that would start on the device next: they can use no other, or it is the highest that has room. */
  readonly waitingFor = (device: Device): number => {
    let sum = 0
    for (const { tree, waiting } of this.queue.filled) {
      const first = tree.first(null, null)?.first
      if (first?.io && this.storage.hopedFor(first, first.io) === device) sum += waiting
    }
    return sum
  }

  /** A file that no task made lies on this device. It takes none of the capacity that was given. */
  locate(version: Version, device: Device, bytes: number): void {
    this.storage.locate(version, device, bytes, false)
  }

  /** The size of what a task made; best told before `finished`. */
  stored(version: Version, bytes: number): void {
    this.storage.measured(version, bytes)
    this.bound?.stored(version, bytes)
  }

  /** The version could not be deleted: it takes its room for good. */
  stays(version: Version): void {
    this.bound?.stays(version)
  }

  /** The version is gone from its device: deleted after `discard`, or moved to the path that the user named. */
  gone(version: Version): void {
    this.storage.forget(version)
    this.bound?.gone(version)
    this.moves.forget(version)
  }

  /** The file is the user's now, at the path that was named: it takes room of the device, and the run has that much less. */
  handOver(version: Version): void {
    const { place } = version
    if (!place) return
    const { device } = place
    const bytes = place.measured ?? place.bytes
    this.gone(version)
    device.capacity -= bytes
    device.handedOver += bytes
    this.locate(version, device, bytes)
  }

  /** The file is where the user had it before the run, and takes nothing of what the run may use. */
  putBack(version: Version): void {
    const { place } = version
    if (!place) return
    const { device, measured } = place
    this.gone(version)
    this.locate(version, device, measured ?? 0)
  }

  /** What was learned so far, for `learned` of the next run. */
  export(): Learned[] {
    return this.limits.export()
  }

  /** Nothing more is placed on the device: it is full, read-only or not there any more. */
  fail(device: Device, reason: string, now: number): void {
    if (device.offline !== null) return
    device.offline = reason
    device.offlineSince = now
    this.storage.hasFailures = true
    this.#observer()?.({ type: 'device-failed', at: now, device: device.index, reason })
  }

  /** How a move ended: the version lies at its new place, and the old copy is deleted. */
  moved(move: Move, now: number): void {
    this.moves.moved(move, now)
    this.#freed(move.version)
  }

  /** The version stays where it was; nothing is left at the place that it was to go to. */
  moveFailed(move: Move, reason: string, now: number, phase: 'failed' | 'dropped' = 'failed'): void {
    this.moves.moveFailed(move, reason, now, phase)
    this.#freed(move.version)
  }
}

/**
 * The bound for all devices together. Where each device has one of its own, the lowest one's holds for all:
 * then whatever may start fits there.
 */
function boundOf(given: number | undefined, devices: readonly Device[]): number {
  const all = given ?? Infinity
  if (devices.length === 0 || devices.some(({ maxIntermediate }) => maxIntermediate === Infinity)) return all
  const lowest = devices.reduce((a, b) => (b.rank > a.rank ? b : a))
  return Math.min(all, lowest.maxIntermediate)
}
