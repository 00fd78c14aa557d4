import type { DeviceDescription } from '../../core/io/device.ts'
import type { NodeDescription } from '../../core/schedule/machine.ts'

/** A device as the simulator sees it: what the core knows of it, and how it behaves. */
export interface DeviceModel extends DeviceDescription {
  /** Bytes per second that one stream can reach at most. @default all */
  stream?: number
  /** The same for writing, where that differs. @default stream */
  streamWrite?: number
  /** Number of concurrent streams up to which it has its full rate. @default any number */
  knee?: number
  /** How much is lost beyond the knee: with twice as many streams the bandwidth is divided by 1 + falloff. @default 0 */
  falloff?: number
  /** What it does, where that is not what it is described to do: bytes per second. @default `read` and `write` */
  actual?: { readonly read: number | null; readonly write: number | null }
  /** Milliseconds before each transfer. @default 0 */
  latency?: number
  /** What is read takes from what can be written at the same time, as with a disk that has one arm. @default false */
  oneArm?: boolean
  /** Bytes that may wait in memory to be written while the task that wrote them goes on. @default 0 */
  buffer?: number
  /** Milliseconds that a write waits at its end for what others write, when `knee` write at once; grows with the cube of their number. @default 0 */
  sync?: number
}

/** A node as the simulator sees it: what the core knows of it, and how fast it is. */
export interface NodeModel extends NodeDescription {
  storage?: readonly DeviceModel[]
  /** How fast its CPUs are; costs are given for speed 1. @default 1 */
  speed?: number
  /** Real CPUs behind `cpus`, when there are fewer. @default cpus */
  cores?: number
  /** Bytes of memory that keep what was read and written. @default 0 */
  cache?: number
  /** Bytes per second at which one task reads what is kept there. @default no time */
  cacheRate?: number
  /** Bytes per second in and out of the node, each. @default no limit */
  link?: number
}

/** What the core knows of it. The ranks of one task may be on several nodes, also on those that join later. */
export const coreNode = (model: NodeModel): NodeDescription => ({ ...model, sharesRanks: true })

/** What a simulated run runs on. */
export interface Platform {
  readonly nodes: readonly NodeModel[]
}
