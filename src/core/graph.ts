import type { Access, AccessMode, Team, Version } from './data.ts'
import type { Group, Task, TaskState } from './task.ts'

const NO_GROUPS: readonly Group[] = []

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

/** All live members of a group and of the groups inside it. */
export function* members(group: Group): Generator<Task> {
  for (let task = group.first, next: Task | null; task; task = next) {
    next = task.next
    yield task
  }
  const inside = group.children.size > 0 ? [...group.children] : NO_GROUPS
  for (const child of inside) yield* members(child)
}
