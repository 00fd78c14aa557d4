import type { StepBoard } from '../../stream/board/board.ts'
import type { Kept } from '../../stream/board/keeper.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import type { Workspace } from '../../stream/board/workspace.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import type { NodeOptions } from '../runtime-options.ts'

/** One instance of a step, and where it runs. */
export interface StepInstance {
  readonly command: StepCommand
  readonly number: number
  /** There are others of its step. */
  readonly isOneOfMany: boolean
  /** Of the node that it needs. */
  readonly tags: readonly string[]
}

/** What boards tell the run that uses them. */
export interface BoardEvents {
  note(level: 'info' | 'warning', text: string): void
  hasEnded(step: string, number: number): boolean
  /** A node was lost with what ran there. */
  nodeLost(node: number, reason: string): void
}

/** How a run of a coordination file ended, as far as its files are concerned. */
export interface BoardsEnd {
  readonly last: Snapshot | undefined
  readonly kept: Kept
  /** Temporary files that were removed; undefined when they were left. */
  readonly removed: number | undefined
  readonly workspace: Workspace
  /** The files of all nodes are there. */
  readonly isWhole: boolean
}

/** The boards and managed directories of a coordination file: one on this machine, or one on each of several nodes. */
export interface Boards {
  /** The nodes on which its steps run. */
  readonly nodes: readonly NodeOptions[]
  readonly instances: readonly StepInstance[]
  readonly steps: StepBoard
  /** Where programs start. Not absolute: below the managed directory of their node. */
  readonly dir: string
  /** Variables of programs that the node does not add. */
  readonly env: Readonly<Record<string, string>>
  /** Programs that are not intercepted, and of which the user was told at the start. */
  readonly unseen: ReadonlySet<string>
  /** The run is there: steps are about to be called. `run` is its name. */
  begin(run: string, events: BoardEvents): void
  /** All files, as they are now. */
  look(): Promise<Snapshot | undefined>
  /** All steps have ended. `isCut`: they were stopped. */
  finish(isOk: boolean, isCut: boolean): Promise<BoardsEnd>
}

/** Of commands in their order. Several commands of one step go on counting. */
export function instancesOf(commands: readonly StepCommand[]): StepInstance[] {
  const next = new Map<string, number>()
  return commands.flatMap(command => {
    const { step, times = 1 } = command
    const first = next.get(step) ?? 0
    next.set(step, first + times)
    return Array.from({ length: times }, (_, n) => ({
      command,
      number: first + n,
      isOneOfMany: times > 1,
      tags: [],
    }))
  })
}
