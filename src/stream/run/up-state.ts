import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import type { Board } from '../board/board.ts'
import type { Plan } from '../board/plan.ts'
import { cacheFolder } from './toolchain.ts'
import type { Opened, Workspace } from '../board/workspace.ts'

/** What another process needs to end a workflow. The plan is as it was at the start: the file may have been edited since. */
export interface UpState extends Opened {
  /** Where the workflow is on several nodes: the steps that may be started on this one. */
  steps?: readonly string[]
}

/** In the user's own cache, not in /dev/shm: no other user may write what this file says is removed. */
const statePath = (board: Board): string =>
  join(cacheFolder(), 'up', `${hostname()}.${board.workflow.replace(/[^\w.-]/g, '_')}.json`)

const newPath = (board: Board): string => `${statePath(board)}.new`

export async function readState(board: Board): Promise<UpState | undefined> {
  const text = await readFile(statePath(board), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const { plan, workspace, steps } = JSON.parse(text) as {
    plan: Plan
    workspace: Workspace & { before: string[] }
    steps?: string[]
  }
  const state = { plan, workspace: { ...workspace, before: new Set(workspace.before) } }
  return steps === undefined ? state : { ...state, steps }
}

export async function writeState(board: Board, { plan, workspace, steps }: UpState): Promise<void> {
  await mkdir(dirname(statePath(board)), { recursive: true, mode: 0o700 })
  const text = JSON.stringify({ plan, workspace: { ...workspace, before: [...workspace.before] }, steps })
  // Whole or not at all, also when this process is killed.
  await writeFile(newPath(board), text, { mode: 0o600 })
  await rename(newPath(board), statePath(board))
}

export async function forgetState(board: Board): Promise<void> {
  await rm(statePath(board), { force: true })
  await rm(newPath(board), { force: true })
}
