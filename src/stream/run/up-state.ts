import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import type { Board } from '../board/board.ts'
import type { Plan } from '../board/plan.ts'
import { cacheFolder } from './toolchain.ts'
import type { Workspace } from '../board/workspace.ts'

/** What somebody else needs to end a workflow. The plan is as it was at the start: the file may have been edited since. */
export interface UpState {
  plan: Plan
  workspace: Workspace
}

/** In the user's own cache, not in /dev/shm: no other user may write what this file says is removed. */
const statePath = (board: Board): string =>
  join(cacheFolder(), 'up', `${hostname()}.${board.workflow.replace(/[^\w.-]/g, '_')}.json`)

export async function readState(board: Board): Promise<UpState | undefined> {
  const text = await readFile(statePath(board), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const { plan, workspace } = JSON.parse(text) as { plan: Plan; workspace: Workspace & { before: string[] } }
  return { plan, workspace: { ...workspace, before: new Set(workspace.before) } }
}

export async function writeState(board: Board, { plan, workspace }: UpState): Promise<void> {
  await mkdir(dirname(statePath(board)), { recursive: true, mode: 0o700 })
  const text = JSON.stringify({ plan, workspace: { ...workspace, before: [...workspace.before] } })
  await writeFile(statePath(board), text, { mode: 0o600 })
}

export const forgetState = (board: Board): Promise<void> => rm(statePath(board), { force: true })
