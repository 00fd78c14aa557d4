import type { NodeDescription } from '../core/machine.ts'
import type { DeviceModel } from './device.ts'

/** A node as the simulator sees it: what the core knows of it, and how fast it is. */
export interface NodeModel extends NodeDescription {
  /** How fast its CPUs are; costs are given for speed 1. @default 1 */
  speed?: number
  /** Real CPUs behind `cpus`, when there are fewer. @default cpus */
  cores?: number
  /** Devices of its own, the one that tasks write to first. */
  storage?: readonly DeviceModel[]
  /** Bytes of memory that keep what was read and written. @default 0 */
  cache?: number
  /** Bytes per second at which one task reads what is kept there. @default no time */
  cacheRate?: number
  /** Bytes per second in and out of the node, each. @default no limit */
  link?: number
}

/** What a simulated run runs on. */
export interface Platform {
  nodes: readonly NodeModel[]
  /** File systems that all nodes use. */
  shared: readonly DeviceModel[]
}
