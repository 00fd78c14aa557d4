import { Heap } from '../../general/heap.ts'
import type { Node } from '../schedule/machine.ts'
import { Budget } from './budget.ts'
import { Device, rankDevices } from './device.ts'
import type { DeviceDescription } from './device.ts'

/** I/O tasks that may run on a node at one time, unless its description says otherwise. */
export const DEFAULT_IO_EXECUTORS = 64

/** What a node has for I/O: slots for I/O tasks, layers of storage, and budgets for all of them together. */
export class IoNode {
  readonly node: Node
  readonly executors: number
  readonly read: Budget
  readonly write: Budget
  /** Highest first. */
  layers: Device[] = []
  readonly #free = new Heap<number>((a, b) => a < b)
  #fresh = 0
  taken = 0

  constructor(node: Node, description: IoNodeDescription) {
    this.node = node
    this.executors = description.ioExecutors ?? DEFAULT_IO_EXECUTORS
    this.read = new Budget(description.bandwidth?.read)
    this.write = new Budget(description.bandwidth?.write)
  }

  get freeSlots(): number {
    const { isLost, isPaused } = this.node
    return isLost || isPaused ? 0 : this.executors - this.taken
  }

  /** The lowest free lane; lanes of I/O come after those of the CPUs. */
  takeLane(): number {
    this.taken++
    return this.#free.pop() ?? this.node.cpus + this.#fresh++
  }

  giveLane(lane: number): void {
    this.taken--
    this.#free.push(lane)
  }
}

/** The part of a node's description that is about I/O. */
export interface IoNodeDescription {
  /** I/O tasks that run at one time; they hold no CPU. @default 64 */
  ioExecutors?: number
  storage?: readonly DeviceDescription[]
  /** All devices of the node together, where its bus or network is narrower than they are. */
  bandwidth?: { read?: number; write?: number }
}

/** Shared devices of one name are one device. */
export function buildDevices(nodes: readonly IoNode[], descriptions: readonly IoNodeDescription[]): Device[] {
  const devices: Device[] = []
  const shared = new Map<string, Device>()
  for (const [i, ioNode] of nodes.entries()) {
    for (const description of descriptions[i]?.storage ?? []) {
      let device = description.shared ? shared.get(description.name) : undefined
      if (!device) {
        const partner = ioNode.layers.find(({ name }) => name === description.sharesWith)
        device = new Device(devices.length, description.shared ? null : i, description, partner)
        devices.push(device)
        if (description.shared) shared.set(description.name, device)
      }
      device.executors += ioNode.executors
      device.usual = Math.max(device.usual, ioNode.node.cpus)
      ioNode.layers.push(device)
    }
  }
  sortLayers(nodes, devices)
  return devices
}

export function sortLayers(nodes: readonly IoNode[], devices: readonly Device[]): void {
  rankDevices(devices)
  for (const { layers } of nodes) layers.sort((a, b) => a.rank - b.rank)
}
