import type { Access, AccessMode, Team, Version } from './datum.ts'
import type { Task } from '../tasks/task.ts'
import type { CancelWhy } from '../why.ts'

export const isUnmade = ({ state, producer, team, previous }: Version): boolean =>
  state === 'pending' && producer === null && team === null && previous === null

/** Whether tasks other than this writer, and other than its team, still read the version. */
export function othersRead(version: Version, writer: Task): boolean {
  let own = 0
  let team: Team | null = null
  for (const { read, write } of writer.accesses) {
    if (read !== version) continue
    if (write?.team) team = write.team
    else own++
  }
  return version.readers > own + (team?.live ?? 0)
}

/** A task uses the same datum once more: it still makes one version of it, and sees what was before that. */
export function again(own: Version, mode: AccessMode): Access {
  const { team, previous } = own
  const before = team ? team.base : previous
  if (mode === 'in') return { mode, read: before, write: null }
  if (team) {
    team.live++
    return { mode: team.mode, read: before, write: own }
  }
  return mode === 'out' ? { mode, read: null, write: own } : { mode: 'inout', read: before, write: own }
}

/** Why a task that reads the version, which never comes, is cancelled. */
export function whyNeverRead({ cause }: Version): CancelWhy {
  if (cause?.state === 'failed') return { kind: 'failed', task: cause.title }
  return { kind: 'input-cancelled', task: cause?.title ?? null }
}
