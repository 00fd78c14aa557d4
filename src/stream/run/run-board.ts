import type { Board } from '../board/board.ts'
import { planLines } from '../board/plan-lines.ts'
import type { Plan } from '../board/plan.ts'
import { removeOwn } from '../board/workspace.ts'
import type { Workspace } from '../board/workspace.ts'
import { forgetState, writeState } from './up-state.ts'
import { watchOver } from './watch.ts'

export interface RunBoardOptions {
  /** How often each step is started. */
  instances: ReadonlyMap<string, number>
  /** Seconds after which one wait fails. */
  limit?: number
  /** Temporary files are left. */
  keep?: boolean
}

/** The board of a run that is under way. */
export interface RunBoard {
  /** All files are where they belong. */
  end(): Promise<void>
  /** The run cannot go on: nothing of it is kept. */
  discard(): Promise<void>
}

/** Makes the board of a run. Should this process be killed, a shell ends the run as `stream down` does. */
export async function openRunBoard(
  board: Board,
  plan: Plan,
  workspace: Workspace,
  options: RunBoardOptions,
): Promise<RunBoard> {
  const { dir, layer, own, place } = workspace
  const { instances, limit, keep = false } = options
  const lines = planLines(plan, {
    dir,
    workflow: board.workflow,
    instances,
    ...(limit === undefined ? {} : { limit }),
    ...(layer === undefined ? {} : { layer }),
    ...(own ? { inputs: place } : {}),
  })
  let release = (): void => {}
  const discard = async (): Promise<void> => {
    await board.destroy(true).catch(() => false)
    await removeOwn(workspace)
    await forgetState(board)
    release()
  }
  try {
    await board.create(lines, process.pid)
    await writeState(board, { plan, workspace })
    release = watchOver(board.workflow, keep)
  } catch (error) {
    await discard()
    throw error
  }
  return {
    discard,
    async end() {
      await board.destroy(true)
      await forgetState(board)
      release()
    },
  }
}
