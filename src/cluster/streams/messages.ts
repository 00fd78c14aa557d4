import type { CommandResult } from '../../node/processes/command-process.ts'
import type { ParsedLimits } from '../../model/options/process-limits.ts'
import type { Kept } from '../../stream/board/keeper.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import type { ProbeOrder, Sight } from './sight.ts'

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
  /** To a relay: send all again. Of a relay: all was sent again. */
  again: 72,
  /** To a relay: no more bytes of a file for now, or go on. */
  hold: 73,
  /** Of a relay: a file is complete, and is held. */
  late: 74,
  /** To a relay: what `ps` says of the other nodes. */
  around: 75,
} as const
/** The last byte of `begin`. */
export const FLAGS = { directory: 1, again: 2 } as const
/** A frame within one that the coordinator passes on, where nodes cannot reach each other. */
export const CARRY_FRAME = 80
/** The end of a step. */
export const MARK_FRAME = 81
/** What follows on this way was sent after this many ways had failed. */
export const EPOCH_FRAME = 82
/** Bytes that came by the coordinator were taken. */
export const TAKEN_FRAME = 83

/** Milliseconds between two signs of life of the coordinator and of nodes. */
export const PULSE = 1000
/** A node that is silent for this many milliseconds is lost. */
export const SILENCE = 60_000
/** A node that hears nothing for this many milliseconds ends its steps. It is longer, because the coordinator may have been stopped for a while. */
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
  /** Marks what steps start, in `MILLRACE_RUN`. */
  readonly mark: string
  /** Of the configuration, for messages. */
  readonly file: string
  readonly text: string
  /** Where inputs are and permanent files go: a folder that all nodes see. */
  readonly place: string
  /** The managed directory, where all nodes see one: bytes go through it. Without it each node has its own. */
  readonly shared?: { readonly dir: string; readonly sight: Sight }
  /** Steps are started by the user, on a board of this name. */
  readonly board?: string
  /** Which of the nodes this is. */
  readonly node: number
  readonly nodes: readonly NodeOfRun[]
  readonly environment: Readonly<Record<string, string>>
  readonly limit?: number
  readonly keep?: boolean
  readonly reserve?: number
}

/** A node, as the others know it. */
export interface NodeOfRun {
  readonly name: string
  /** Where it can be called; host:port. */
  readonly addresses: readonly string[]
  /** Instances of steps there: how many, and the number of the first. */
  readonly steps: readonly (readonly [step: string, count: number, first: number])[]
}

/** A program that is to run as a step. */
export interface StepRequest {
  readonly step: string
  readonly argv: readonly string[]
  /** Not absolute: below the managed directory. */
  readonly cwd: string
  /** What its environment has beyond that of the node. */
  readonly env: Readonly<Record<string, string>>
  readonly limits: ParsedLimits | null
}

/** How it ended. `ago`: milliseconds since it began. */
export type StepResult = Omit<CommandResult, 'beganAt'> & { readonly ago: number }

/** Why it could not begin. */
export interface StepRefusal {
  readonly code?: string
  readonly message: string
  readonly hint?: string
}

export type ToStreamNode =
  /** `isFar`: some nodes are on other machines. */
  | { readonly do: 'listen'; readonly node: number; readonly token: string; readonly isFar: boolean }
  | { readonly do: 'start'; readonly orders: StreamOrders }
  | { readonly do: 'run'; readonly id: number; readonly request: StepRequest }
  | { readonly do: 'end'; readonly id: number }
  | { readonly do: 'probe'; readonly order: ProbeOrder }
  /** Ends what runs there, also programs that left their step. */
  | { readonly do: 'stop' }
  | { readonly do: 'finish'; readonly isOk: boolean }
  | { readonly do: 'lost'; readonly node: number }
  | { readonly do: 'pulse' }

/** Bytes that a node has sent on one way. */
export interface Sent {
  /** The nodes that got them, one from the other. */
  readonly chain: readonly number[]
  readonly isByCoordinator: boolean
  readonly bytes: number
}

export interface NodeResult {
  readonly sent: readonly Sent[]
  readonly kept: Kept
  /** Temporary files that were removed; undefined when they were left. */
  readonly removed: number | undefined
  /** The managed directory. */
  readonly dir: string
  readonly last: Snapshot | undefined
}

/** What programs on a node need to know. */
export interface Begun {
  /** The managed directory. */
  readonly dir: string
  readonly library: string
}

export type FromStreamNode =
  /** `memory`: bytes. */
  | { readonly say: 'hello'; readonly version: string; readonly cpus: number; readonly memory: number }
  | { readonly say: 'listening'; readonly addresses: readonly string[] }
  | { readonly say: 'probed'; readonly isWell: boolean }
  | { readonly say: 'started'; readonly begun: Begun }
  | { readonly say: 'pulse' }
  /** What a program printed, in base 64. */
  | { readonly say: 'printed'; readonly id: number; readonly bytes: string }
  | { readonly say: 'note'; readonly text: string }
  | { readonly say: 'ran'; readonly id: number; readonly result: StepResult }
  | { readonly say: 'refused'; readonly id: number; readonly error: StepRefusal }
  | { readonly say: 'look'; readonly snapshot: Snapshot; readonly sent: readonly Sent[] }
  | { readonly say: 'result'; readonly result: NodeResult }
  | { readonly say: 'fault'; readonly message: string; readonly hint: string }
