import type { Board } from '../../stream/board/board.ts'
import { Keeper } from '../../stream/board/keeper.ts'
import type { Plan } from '../../stream/board/plan.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import { holdOn, removeTemporary } from '../../stream/board/workspace.ts'
import type { Workspace } from '../../stream/board/workspace.ts'
import { programsOf } from '../../stream/run/elf.ts'
import type { RunBoard } from '../../stream/run/run-board.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import { describeNode } from '../describe-node.ts'
import type { RunOptions } from '../run-options.ts'
import type { NodeOptions } from '../runtime-options.ts'
import { instancesOf } from './boards.ts'
import type { BoardEvents, Boards, BoardsEnd, StepInstance } from './boards.ts'

interface LocalOptions {
  readonly keep?: boolean
  readonly reserve?: number
}

/** Steps need no CPU: as many run at one time as there are. */
export const MOST_STEPS = 1_000_000

/** The board of a workflow on this machine. */
export class LocalBoards implements Boards {
  readonly nodes: readonly NodeOptions[]
  readonly instances: readonly StepInstance[]
  readonly steps: Board
  readonly dir: string
  readonly env: Readonly<Record<string, string>>
  readonly unseen = new Set<string>()
  readonly #commands: readonly StepCommand[]
  readonly #plan: Plan
  readonly #workspace: Workspace
  readonly #keeper: Keeper
  readonly #options: LocalOptions
  #events: BoardEvents | null = null

  constructor(
    { board, plan, workspace }: RunBoard,
    commands: readonly StepCommand[],
    run: RunOptions,
    options: LocalOptions,
  ) {
    this.nodes = [{ description: { ...describeNode(run, null), ioExecutors: MOST_STEPS }, ports: null }]
    this.instances = instancesOf(commands)
    this.steps = board
    this.dir = workspace.dir
    this.env = { MILLRACE_PLACE: workspace.place }
    this.#commands = commands
    this.#plan = plan
    this.#workspace = workspace
    this.#options = options
    const { reserve } = options
    this.#keeper = new Keeper(plan, workspace, text => this.#events?.note('warning', text.trimEnd()), {
      ...(reserve === undefined ? {} : { reserve }),
      relieve: bytes => board.spill(bytes),
    })
  }

  begin(_run: string, events: BoardEvents): void {
    this.#events = events
    for (const { step, run, cwd } of this.#commands) {
      const folder = typeof run === 'string' ? (cwd ?? this.dir) : process.cwd()
      for (const { path, fault } of programsOf(run, folder)) {
        if (fault === undefined) continue
        this.unseen.add(path)
        events.note(
          'warning',
          `step '${step}': ${path} ${fault}; it is not intercepted: it waits for nothing, and of what it writes only its end is seen`,
        )
      }
    }
  }

  async look(): Promise<Snapshot | undefined> {
    const snapshot = await this.steps.ps()
    if (snapshot !== undefined) this.#keeper.look(snapshot)
    return snapshot
  }

  async finish(isOk: boolean, isCut: boolean): Promise<BoardsEnd> {
    const last = await this.steps.ps()
    // Programs that left their group have not ended with their step.
    if (isCut) for (const { pid } of last?.processes ?? []) killQuietly(pid)
    const { keep } = this.#options
    const kept = await this.#keeper.finish(last, isOk, keep)
    const mustStay = keep === true || kept.stuck.length > 0
    const removed = mustStay ? undefined : await removeTemporary(this.#plan, this.#workspace)
    if (mustStay) await holdOn(this.#workspace)
    return { last, kept, removed, workspace: this.#workspace, isWhole: true }
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
