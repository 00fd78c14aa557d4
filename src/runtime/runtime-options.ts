import type { Observer } from '../core/events.ts'
import type { IoOptions } from '../core/io/io-core.ts'
import type { NodeDescription } from '../core/schedule/machine.ts'
import type { Policy } from '../core/schedule/policy.ts'
import type { BindSettings } from '../node/cpus/binding.ts'
import type { NodePorts } from '../node/local-node.ts'
import type { StepTimes } from '../node/steps.ts'

export interface NodeOptions {
  readonly description: NodeDescription
  /** Null for this machine. */
  readonly ports: NodePorts | null
}

export interface RuntimeOptions {
  /** Unique on this machine. */
  id: string
  nodes: readonly NodeOptions[]
  /** Further nodes may join. */
  mayGrow: boolean
  policy: Policy
  io: IoOptions
  logs: string | null
  bind: BindSettings
  /** Of which attempts the steps are measured. */
  stepTimes: StepTimes
  observer: Observer | null
  /** The program's own module. */
  entry: string | null
}
