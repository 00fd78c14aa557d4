import { existsSync } from 'node:fs'
import { Board } from '../board/board.ts'
import { planLines } from '../board/plan-lines.ts'
import type { Plan } from '../board/plan.ts'
import { openWorkspace, removeOwn } from '../board/workspace.ts'
import type { Workspace } from '../board/workspace.ts'
import { StreamError } from '../stream-error.ts'
import type { Tools } from './toolchain.ts'
import { forgetState, readState, writeState } from './up-state.ts'
import { watchOver } from './watch.ts'

export interface RunBoardOptions {
  /** The managed directory; without it a private one in memory. */
  dir: string | undefined
  /** Where permanent files go when no `dir` is given. */
  place: string
  /** How often each step is started. */
  instances: ReadonlyMap<string, number>
  /** Seconds after which one wait fails. */
  limit?: number | undefined
  /** Temporary files are left. */
  keep?: boolean | undefined
  /** Other nodes use the directory as well. What is left in it is for their coordinator to judge. */
  isShared?: boolean
  /** The name of the board; one that no other run has, without it. */
  name?: string
  /** The steps that others may start on it. */
  steps?: readonly string[]
}

/** The board and the directory of a run that is under way. */
export interface RunBoard {
  readonly board: Board
  readonly plan: Plan
  readonly workspace: Workspace
  /** All files are where they belong. */
  end(): Promise<void>
  /** The run cannot go on: nothing of it is kept. */
  discard(): Promise<void>
}

let runs = 0

/** A board that is up under this name, or one of which files are left, stays as it is. */
export async function refuseSecond(board: Board): Promise<void> {
  const earlier = await readState(board)
  const left = earlier?.workspace.own === true && existsSync(earlier.workspace.dir)
  if (!left && (await board.ps()) === undefined) return
  const where = earlier === undefined ? '' : `, in ${earlier.workspace.dir}`
  throw new StreamError(
    'MR_STREAM_BOARD',
    `'${board.workflow}' is up already${where}`,
    "end it first: 'millrace stream down'",
  )
}

/**
 * Makes the board and the directory of a run. Should this process be killed at any point, a shell ends the run as `stream down`
 * does: it watches, and the state says what there will be, before anything is made.
 */
export async function openRunBoard(checked: Plan, tools: Tools, options: RunBoardOptions): Promise<RunBoard> {
  const { dir, place, instances, limit, keep = false, isShared = false, steps } = options
  // Runs of one configuration side by side need names of their own.
  const name =
    options.name ?? `${checked.name.replace(/[^\w.-]/g, '_').slice(0, 60)}.run${process.pid}.${runs++}`
  const board = new Board(tools, name)
  if (options.name !== undefined) await refuseSecond(board)
  const release = watchOver(name, keep)
  let made: Workspace | undefined
  const discard = async (): Promise<void> => {
    await board.destroy(true).catch(() => false)
    if (made) await removeOwn(made)
    await forgetState(board)
    release()
  }
  try {
    const { plan, workspace } = await openWorkspace(checked, dir, place, {
      hasLayer: !isShared,
      announce: async state => {
        if (!isShared) await writeState(board, steps === undefined ? state : { ...state, steps })
      },
    })
    made = workspace
    const lines = planLines(plan, {
      dir: workspace.dir,
      workflow: name,
      instances,
      ...(limit === undefined ? {} : { limit }),
      ...(workspace.layer === undefined ? {} : { layer: workspace.layer }),
      ...(workspace.own || isShared ? { inputs: workspace.place } : {}),
    })
    await board.create(lines, process.pid)
    const end = async (): Promise<void> => {
      await board.destroy(true)
      await forgetState(board)
      release()
    }
    return { board, plan, workspace, end, discard }
  } catch (error) {
    await discard()
    throw error
  }
}
