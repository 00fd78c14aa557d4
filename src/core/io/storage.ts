import type { Version } from '../data/datum.ts'
import type { NodeDescription, Node } from '../schedule/machine.ts'
import type { Kind, Task } from '../tasks/task.ts'
import type { Budget } from './budget.ts'
import type { Device } from './device.ts'
import { IoNode, buildDevices } from './io-node.ts'
import { MANY_NODES, SpotIndex } from './spot-index.ts'
import type { Search } from './spot-index.ts'
import { writtenFiles } from './task-io.ts'
import type { Place, TaskIo } from './task-io.ts'

/** Where a task could start now. */
export interface Spot {
  node: IoNode
  device: Device | null
  /** Bytes per second that it would hold there. */
  bandwidth: number
}

/** What is left on a device for one task: bandwidth and room. Smaller tasks fit as well, unless another reason is against it. */
export interface Opening {
  /** The same number for the same device, seen from the same node. */
  readonly id: number
  readonly device: Device | null
  readonly bandwidth: number
  readonly room: number
}

/** What storage asks about limits. */
export interface Limiter {
  /** Bytes per second that a task would hold on a device; negative: it must not start there now. */
  for(task: Task, io: TaskIo, device: Device): number
  /** Bytes per second without which it starts nowhere; negative if unknown. */
  least(task: Task): number
  /** Tasks with an adaptive limit that may begin to write on the device, at most. */
  slots(device: Device): number
}

/** The devices of all nodes: what is free, who holds what, and which layer a task goes to. */
export class Storage {
  readonly nodes: IoNode[]
  readonly devices: Device[]
  readonly #limit: Limiter
  /** Told when the free memory of a node has changed. */
  onMemory: (node: Node) => void = () => undefined
  /** The most that a task of the kind has written: what the next one is expected to write. */
  readonly #sizes = new Map<Kind, number>()
  /** Null while it is quicker to look at all nodes. */
  #index: SpotIndex | null
  readonly #byRank: readonly Device[]
  #hasBareNodes: boolean
  /** Some device has failed. */
  hasFailures = false
  /** Tasks on any device. */
  #running = 0

  constructor(nodes: readonly Node[], descriptions: readonly NodeDescription[], limit: Limiter) {
    this.nodes = nodes.map((node, i) => new IoNode(node, descriptions[i] as NodeDescription))
    this.devices = buildDevices(this.nodes, descriptions)
    this.#limit = limit
    this.#byRank = [...this.devices].sort((a, b) => a.rank - b.rank)
    this.#hasBareNodes = this.nodes.some(({ layers }) => layers.length === 0)
    this.#index = this.#makeIndex()
  }

  #makeIndex(): SpotIndex | null {
    if (this.nodes.length < MANY_NODES) return null
    return new SpotIndex(this.nodes, this.devices, device => this.#limit.slots(device))
  }

  /** There is one node more; it has no devices. */
  joined(node: Node, description: NodeDescription): void {
    this.nodes.push(new IoNode(node, { ...description, storage: [] }))
    this.#hasBareNodes = true
    this.#index = this.#makeIndex()
  }

  /** Whether anything is under way on any device that will end by itself. */
  get isBusy(): boolean {
    return this.#running > 0
  }

  /** Room, or bandwidth, of a device is not what it was. */
  changed({ node }: Device): void {
    if (node !== null) this.#index?.changed(this.nodes[node] as IoNode)
  }

  /** Bytes that the task will write, as far as is known. */
  sizeOf(task: Task): number {
    return this.knownSizeOf(task) ?? 0
  }

  /** Null while it was not given and no task of the kind has ended. */
  knownSizeOf(task: Task): number | null {
    return task.demand.storage?.size ?? this.#sizes.get(task.kind) ?? null
  }

  /**
   * Where the task could start now: on the node that holds what it reads, or else on any, or on one node. There it gets
   * the highest layer that fits: below it, others are not looked at, because they are slower.
   */
  find(
    task: Task,
    io: TaskIo,
    only: IoNode | null = null,
    avoid: ReadonlySet<Device> | null = null,
  ): Spot | null {
    if (only) return this.findAmong([only], task, io, avoid)
    const home = this.nodes[io.home ?? -1]
    const near = home ? this.findAmong([home], task, io, avoid) : null
    // A node that has no device of its own is not better than one that has.
    if (near && (near.device || !io.needsDevice)) return near
    return this.#index
      ? this.#findByIndex(this.#index, task, io, avoid)
      : this.findAmong(this.nodes, task, io, avoid)
  }

  #findByIndex(index: SpotIndex, task: Task, io: TaskIo, avoid: ReadonlySet<Device> | null): Spot | null {
    const { demand } = task
    const least = this.#limit.least(task)
    const search: Search = {
      pinned: io.pinned,
      wish: {
        read: io.direction === 'read' ? least : -Infinity,
        write: io.direction === 'write' ? least : -Infinity,
        room: this.#roomFor(task, io),
        tasks: demand.storage?.bandwidth === 'adaptive' && io.direction === 'write' ? 1 : -Infinity,
      },
      onDevice: device => (avoid?.has(device) ? -1 : this.#onDevice(task, io, device)),
      onNode: (node, bandwidth) => node.node.fitsNow(demand) && fitsNode(task, io, node, bandwidth),
    }
    const found = io.needsDevice ? index.find(search) : null
    if (found || !this.#mayRunWithout(io)) return found
    const node = index.roomiest(ANYTHING, one => runsWithout(one, io) && one.node.fitsNow(demand))
    return node && { node, device: null, bandwidth: 0 }
  }

  /** Whether some node could run it without a device. */
  #mayRunWithout({ needsDevice, pinned }: TaskIo): boolean {
    return !needsDevice || this.#hasBareNodes || (this.hasFailures && pinned === null)
  }

  /** The node has changed as a whole. */
  nodeChanged({ index }: Node): void {
    this.#index?.changed(this.nodes[index] as IoNode)
  }

  /** The same by looking at each of the nodes. */
  findAmong(
    nodes: readonly IoNode[],
    task: Task,
    io: TaskIo,
    avoid: ReadonlySet<Device> | null = null,
  ): Spot | null {
    let best = null as Spot | null
    const { demand } = task
    for (const node of nodes) {
      if (demand.io && (node.freeSlots <= 0 || !node.node.fitsNow(demand))) continue
      if (runsWithout(node, io)) {
        if (!best || (best.device === null && node.freeSlots > best.node.freeSlots)) {
          best ??= { node, device: null, bandwidth: 0 }
          best.node = node
        }
        continue
      }
      for (const device of node.layers) {
        if (best?.device && device.rank > best.device.rank) break
        if (avoid?.has(device)) continue
        const bandwidth = this.#fitting(task, io, node, device)
        if (bandwidth < 0) continue
        if (best?.device === device && node.freeSlots <= best.node.freeSlots) continue
        // Equal devices: the one with less to do, not always the first.
        if (best?.device?.rank === device.rank && isBusier(device, best.device)) continue
        best = { node, device, bandwidth }
      }
    }
    return best
  }

  /** Where tasks like this one could start now, as far as bandwidth and room go. */
  openings(task: Task, io: TaskIo): Opening[] {
    const { demand } = task
    const { direction, source } = io
    const found: Opening[] = []
    const count = this.devices.length + 1
    this.nodes.forEach((node, n) => {
      if (demand.io && (node.freeSlots <= 0 || !node.node.fitsNow(demand))) return
      if (runsWithout(node, io)) {
        found.push({ id: n * count, device: null, bandwidth: Infinity, room: Infinity })
        return
      }
      for (const device of node.layers) {
        if (!isOpen(device, io)) continue
        let bandwidth = Math.min(device[direction].spare, node[direction].spare)
        if (source) bandwidth = Math.min(bandwidth, spareOf(source.read), spareOf(node.read))
        const room = direction === 'write' ? device.roomFor(io.isTemporary) : Infinity
        found.push({ id: n * count + device.index + 1, device, bandwidth, room })
      }
    })
    return found
  }

  /** The devices on which the task could run but for the bandwidth that others hold, highest first. */
  hopes(task: Task, io: TaskIo): Device[] {
    if (io.pinned) return this.couldUse(task, io, io.pinned) ? [io.pinned] : []
    return this.#byRank.filter(device => this.couldUse(task, io, device))
  }

  /** The device for which the task waits; where none has room, the lowest, as most is kept there. */
  hopedFor(task: Task, io: TaskIo): Device | null {
    if (!io.needsDevice) return null
    if (io.pinned) return io.pinned
    const first = this.#byRank.find(device => this.couldUse(task, io, device))
    return first ?? this.#byRank.findLast(device => isOpen(device, io)) ?? null
  }

  couldUse(task: Task, io: TaskIo, device: Device): boolean {
    return io.needsDevice && this.#isFor(task, io, device)
  }

  /** Whether it may go there and there is room for it. */
  #isFor(task: Task, io: TaskIo, device: Device): boolean {
    if (!isOpen(device, io) || this.#roomFor(task, io) > device.roomFor(io.isTemporary)) return false
    return !device.isLastResort || !this.devices.some(one => !one.isLastResort && this.#isFor(task, io, one))
  }

  /** Bytes without which the task does not start on a device. */
  #roomFor(task: Task, { direction, ignoresRoom }: TaskIo): number {
    return direction === 'write' && !ignoresRoom ? this.sizeOf(task) : -Infinity
  }

  /** No device that it may use has room for what it writes. */
  lacksRoom(task: Task, io: TaskIo): boolean {
    return io.needsDevice && !io.ignoresRoom && io.direction === 'write' && this.hopes(task, io).length === 0
  }

  hasSlots(): boolean {
    return this.#index ? this.#index.hasSlots() : this.nodes.some(({ freeSlots }) => freeSlots > 0)
  }

  /** The bandwidth that the task would hold on this layer, or -1 if it does not fit there now. */
  #fitting(task: Task, io: TaskIo, node: IoNode, device: Device): number {
    const bandwidth = this.#onDevice(task, io, device)
    return bandwidth >= 0 && fitsNode(task, io, node, bandwidth) ? bandwidth : -1
  }

  #onDevice(task: Task, io: TaskIo, device: Device): number {
    if (!this.#isFor(task, io, device)) return -1
    const { direction, source } = io
    if (source?.learner && source !== device) return -1
    const bandwidth = this.#limit.for(task, io, device)
    return bandwidth >= 0 && device[direction].fits(bandwidth) ? bandwidth : -1
  }

  /** The task starts there. Returns its lane if it is an I/O task. */
  take(task: Task, io: TaskIo, { node, device, bandwidth }: Spot, now: number): number {
    io.device = device
    io.startedAt = now
    this.#hold(task, io, node, bandwidth)
    if (device) {
      io.reserved = io.direction === 'write' ? this.sizeOf(task) : 0
      this.use(device, io.reserved, io.isTemporary)
      for (const version of writtenFiles(task)) version.place ??= placeOn(device, version)
    }
    if (!task.demand.io) return -1
    this.#claimMemory(node.node, task.demand.memory)
    this.#index?.changed(node)
    return node.takeLane()
  }

  #claimMemory(node: Node, bytes: number): void {
    if (bytes === 0) return
    node.freeMemory -= bytes
    this.onMemory(node)
  }

  #hold(task: Task, io: TaskIo, node: IoNode, bandwidth: number): void {
    io.bandwidth = bandwidth
    io.holds = true
    const { device, source, direction } = io
    this.#index?.changed(node)
    if (!device) return
    this.#running++
    device.running.add(task)
    device[direction].take(bandwidth)
    node[direction].take(bandwidth)
    if (!source || typeof task.demand.storage?.bandwidth !== 'number') return
    const reading = ofSource(bandwidth, source, node)
    io.sourceBandwidth = reading
    this.changed(source)
    source.read.take(reading)
    node.read.take(reading)
  }

  /** Gives back lane and bandwidth, but not the room that the task's files take. */
  pause(task: Task, io: TaskIo): void {
    if (!io.holds) return
    io.holds = false
    const node = this.nodes[task.node] as IoNode
    this.#index?.changed(node)
    if (task.demand.io) {
      this.#claimMemory(node.node, -task.demand.memory)
      node.giveLane(task.lane)
    }
    if (!io.device?.running.delete(task)) return
    this.#running--
    if (io.source) this.changed(io.source)
    io.device[io.direction].give(io.bandwidth)
    node[io.direction].give(io.bandwidth)
    io.source?.read.give(io.sourceBandwidth)
    node.read.give(io.sourceBandwidth)
    io.paused = io.bandwidth
    io.bandwidth = io.sourceBandwidth = 0
  }

  /** Takes lane and bandwidth again after a pause, on the same node and device; false if they are not free. */
  goOn(task: Task, io: TaskIo): boolean {
    const node = this.nodes[task.node] as IoNode
    const isIo = task.demand.io
    if (isIo && (node.freeSlots <= 0 || task.demand.memory > node.node.freeMemory)) return false
    const bandwidth = io.paused
    if (io.device && !(io.device[io.direction].fits(bandwidth) && node[io.direction].fits(bandwidth)))
      return false
    this.#hold(task, io, node, bandwidth)
    if (isIo) {
      this.#claimMemory(node.node, task.demand.memory)
      task.lane = node.takeLane()
    }
    return true
  }

  /** The attempt is over: what it made is counted, what it had reserved beyond that is free. Returns the bytes that it wrote. */
  settle(task: Task, io: TaskIo, kept: boolean): number {
    const { device, reserved } = io
    if (!device) return 0
    this.use(device, -reserved, io.isTemporary)
    io.reserved = 0
    const files = [...writtenFiles(task)].filter(({ place }) => place)
    let total = 0
    for (const version of files) {
      const place = version.place as Place
      if (kept) {
        this.#count(place, place.measured ?? (version.team ? place.bytes : 0) + reserved / files.length)
        total += place.bytes
      } else if (!version.team) version.place = null
    }
    if (kept) this.#sizes.set(task.kind, Math.max(this.#sizes.get(task.kind) ?? 0, total))
    return total
  }

  /** Takes room on a device, or gives it back when negative. */
  use(device: Device, bytes: number, temporary: boolean): void {
    device.use(bytes, temporary)
    this.changed(device)
  }

  #count(place: Place, bytes: number): void {
    this.use(place.device, bytes - place.bytes, place.temporary)
    place.bytes = bytes
  }

  /** The version has this size; told before its producer's end is, or later. */
  measured(version: Version, bytes: number): void {
    const { place } = version
    if (!place) return
    place.measured = bytes
    if (place.bytes > 0) this.#count(place, bytes)
  }

  /** The version lies there. `counted`: it takes room that the capacity was given for. */
  locate(version: Version, device: Device, bytes: number, counted: boolean): void {
    version.place = placeOn(device, version)
    version.place.measured = bytes
    if (counted) this.#count(version.place, bytes)
  }

  /** The version is on none of the devices any more. */
  forget(version: Version): void {
    const { place } = version
    if (!place) return
    this.#count(place, 0)
    version.place = null
  }
}

const ANYTHING = { read: -Infinity, write: -Infinity, room: 0, tasks: 0 }

/** Whether the node has the bandwidth, and the device that it reads from, too. */
function fitsNode(task: Task, { direction, source }: TaskIo, node: IoNode, bandwidth: number): boolean {
  if (!node[direction].fits(bandwidth)) return false
  if (!source || typeof task.demand.storage?.bandwidth !== 'number') return true
  const reading = ofSource(bandwidth, source, node)
  return source.read.fits(reading) && node.read.fits(reading)
}

/** What a task holds of where it reads: no more than is there, or it would wait for ever. */
const ofSource = (bandwidth: number, { read }: Device, node: IoNode): number =>
  Math.min(bandwidth, read.limit, node.read.limit)

/** A demand above the total gets the total, once all of it is free. */
const spareOf = (budget: Budget): number => (budget.used === 0 ? Infinity : budget.spare)

/** Only tasks without another choice use a failed device: waiting for it would never end. */
const isOpen = (device: Device, { pinned }: TaskIo): boolean =>
  pinned === null ? device.offline === null : pinned === device

/** Without a device that works, files are written beside the place where they are wanted. */
const runsWithout = ({ layers }: IoNode, { needsDevice, pinned }: TaskIo): boolean =>
  !needsDevice || layers.length === 0 || (pinned === null && layers.every(({ offline }) => offline !== null))

const placeOn = (device: Device, { datum }: Version): Place => ({
  device,
  bytes: 0,
  measured: null,
  temporary: datum.temporary,
  move: null,
})

const isBusier = (one: Device, other: Device): boolean =>
  one !== other && one.running.size >= other.running.size
