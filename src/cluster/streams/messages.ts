import type { Kept } from '../../stream/board/keeper.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import type { Instance } from '../../stream/run/runner.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'

/** Types of frames between the coordinator of a stream and its nodes. Those of `millrace-board relay` are passed on as they are. */
export const JSON_FRAME = 1
/** The frames of preload/tool_relay.h. */
export const RELAY = {
  begin: 64,
  data: 65,
  complete: 66,
  fail: 67,
  cut: 68,
  ended: 69,
  want: 70,
  go: 71,
} as const

/** Coordinator and nodes say that they live, each so many milliseconds. */
export const PULSE = 1000
/** A node that hears nothing for so many milliseconds ends its steps: the coordinator may have been stopped for a while. */
export const SILENCE_OF_COORDINATOR = 600_000

/** Instances of a step on one node. */
export interface PlacedCommand extends StepCommand {
  /** The number of the first. */
  readonly first: number
  readonly times: number
}

/** A pattern of files, and a step on another node that reads them. */
export interface Wanted {
  readonly pattern: string
  readonly hasWildcards: boolean
  readonly step: string
}

export interface StreamOrders {
  readonly version: string
  /** Of the configuration, for messages. */
  readonly file: string
  readonly text: string
  /** Where inputs are and permanent files go: a folder that all nodes see. */
  readonly place: string
  readonly commands: readonly PlacedCommand[]
  /** Of all nodes together. */
  readonly instances: readonly (readonly [step: string, count: number])[]
  /** What steps of other nodes read. */
  readonly wanted: readonly Wanted[]
  readonly environment: Readonly<Record<string, string>>
  readonly limit?: number
  readonly keep?: boolean
  readonly reserve?: number
}

export type ToStreamNode =
  | { readonly do: 'start'; readonly orders: StreamOrders }
  | { readonly do: 'stop' }
  | { readonly do: 'finish'; readonly isOk: boolean }
  | { readonly do: 'pulse' }

export interface NodeResult {
  readonly kept: Kept
  /** Temporary files that were removed; undefined when they were left. */
  readonly removed: number | undefined
  /** The managed directory. */
  readonly dir: string
  readonly last: Snapshot | undefined
}

export type FromStreamNode =
  | { readonly say: 'hello'; readonly version: string; readonly cpus: number }
  | { readonly say: 'started' }
  | { readonly say: 'pulse' }
  | { readonly say: 'line'; readonly step: string; readonly text: string; readonly to: 'stdout' | 'stderr' }
  | { readonly say: 'note'; readonly text: string }
  | { readonly say: 'ended'; readonly instance: Instance }
  | { readonly say: 'look'; readonly snapshot: Snapshot }
  | { readonly say: 'result'; readonly result: NodeResult }
  | { readonly say: 'fault'; readonly message: string; readonly hint: string }
