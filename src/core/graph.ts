import type { Access, AccessMode, Team, Version } from './data.ts'
import type { Task, TaskState } from './task.ts'

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

export function doomReason(version: Version): string {
  const { cause } = version
  if (!cause) return 'something that it needs was cancelled'
  const what: Partial<Record<TaskState, string>> = { failed: 'failed' }
  return `${cause.name} ${what[cause.state] ?? 'was cancelled'}`
}
