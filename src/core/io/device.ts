import type { Task } from '../tasks/task.ts'
import { Budget } from './budget.ts'
import type { AutoTuner } from './tuner.ts'

/** A place for files, as the machine's description gives it. */
export interface DeviceDescription {
  name: string
  path: string
  /** Bytes per second; null when unknown. */
  read: number | null
  write: number | null
  /** Bytes; null when there is no limit. */
  capacity: number | null
  /** One device for all nodes that name it, with one budget and one capacity. */
  shared?: boolean
  /** The CPUs near it: tasks that use it should be bound to them. */
  cpus?: readonly number[]
  /** Maximum number of its bytes for temporary data. */
  maxIntermediate?: number
  /** Files go there only when no other device has room for them; bandwidth is waited for elsewhere. */
  lastResort?: boolean
  /** It is on the same disk as the device of this name, and has its bandwidth together with it. */
  sharesWith?: string
}

export class Device {
  readonly index: number
  readonly name: string
  readonly path: string
  /** The node that it belongs to; null for a shared one. */
  readonly node: number | null
  readonly cpus: readonly number[] | null
  readonly maxIntermediate: number
  readonly isLastResort: boolean
  readonly read: Budget
  readonly write: Budget
  /** Position among all devices, fastest first: the lower, the higher the layer. */
  rank = 0
  capacity: number
  /** Bytes that lie there or are reserved for tasks that run. */
  used = 0
  /** Bytes of files that are the user's now. They lie there, and the capacity is that much less. */
  handedOver = 0
  /** Of these, bytes of temporary data. */
  temporary = 0
  /** I/O executors of the nodes that reach it. */
  executors = 0
  /** CPUs of a node that reaches it: the number of tasks that would use it at one time if they were not I/O tasks. */
  usual = 0
  /** Tasks that work on it now. */
  readonly running = new Set<Task>()
  /** The kind that learns there and wants to be alone. */
  learner: AutoTuner | null = null
  /** Kinds that want to learn next. */
  readonly learners = new Set<AutoTuner>()
  /** It cannot be claimed for the rest of this decision. */
  refusesLearning = false
  /** Why it cannot be used any more. */
  offline: string | null = null
  offlineSince = Infinity

  /** `partner`: the device that it has its bandwidth together with. */
  constructor(
    index: number,
    node: number | null,
    description: DeviceDescription,
    partner: Device | null = null,
  ) {
    this.index = index
    this.node = node
    this.name = description.name
    this.path = description.path
    this.cpus = description.cpus ?? null
    this.maxIntermediate = description.maxIntermediate ?? Infinity
    this.isLastResort = description.lastResort ?? false
    this.read = partner?.read ?? new Budget(description.read)
    this.write = partner?.write ?? new Budget(description.write)
    this.capacity = description.capacity ?? Infinity
  }

  /** Bytes that are taken, of the capacity that was given. */
  get taken(): number {
    return this.used + this.handedOver
  }

  get free(): number {
    return Math.max(0, this.capacity - this.used)
  }

  /** Bytes that still fit there. */
  roomFor(temporary: boolean): number {
    return temporary ? Math.min(this.free, this.maxIntermediate - this.temporary) : this.free
  }

  hasRoom(bytes: number, temporary: boolean): boolean {
    return bytes <= this.roomFor(temporary)
  }

  /** Takes room, or gives it back when negative. */
  use(bytes: number, temporary: boolean): void {
    this.used += bytes
    if (temporary) this.temporary += bytes
  }
}

/**
 * Faster first; among equals the smaller one; what is not measured comes last. Equal devices, of one node
 * or of several, are one layer.
 */
export function rankDevices(devices: readonly Device[]): void {
  const speed = ({ limit }: Budget): number => (limit === Infinity ? 0 : limit)
  const order = (a: Device, b: Device): number =>
    speed(b.write) - speed(a.write) ||
    speed(b.read) - speed(a.read) ||
    (a.capacity === b.capacity ? 0 : a.capacity - b.capacity)
  const sorted = [...devices].sort((a, b) => order(a, b) || a.index - b.index)
  sorted.forEach((device, i) => {
    const before = sorted[i - 1]
    device.rank = before && order(before, device) === 0 ? before.rank : i
  })
}
