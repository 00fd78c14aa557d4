import type { Version } from './data/datum.ts'
import type { Observer } from './events.ts'
import type { IoOptions } from './io/io-core.ts'
import type { NodeDescription } from './schedule/machine.ts'
import type { Policy } from './schedule/policy.ts'

export interface EngineOptions extends IoOptions {
  nodes: NodeDescription[]
  policy?: Policy
  observer?: Observer | null
  /** Bytes of what was made, of files and folders; 0 if they are not known. */
  sizeOf?: (version: Version) => number
  /** Nodes may join, so a task may wait for one. */
  mayGrow?: boolean
}
