import type { AccessRequest } from './engine.ts'
import type { Version } from './data.ts'
import { MillraceError } from './errors.ts'
import type { Task } from './task.ts'

/**
 * A task ends only after the tasks that it called. So a called task must not need, directly or through
 * others, anything that one of its callers has yet to write: both would wait for ever.
 */
export function rejectNestedCycle(parent: Task, name: string, accesses: readonly AccessRequest[]): void {
  const callers = new Set<Task>()
  for (let at: Task | null = parent; at; at = at.parent) callers.add(at)
  const seen = new Set<Version>()
  const stack: Version[] = []
  for (const { datum, mode } of accesses) if (mode !== 'out') stack.push(datum.current)
  for (let version = stack.pop(); version; version = stack.pop()) {
    if (seen.has(version) || version.settled) continue
    seen.add(version)
    for (const maker of makersOf(version, callers)) {
      if (callers.has(maker)) {
        const what = version.datum.path ?? 'a value'
        throw new MillraceError(
          'MR_NESTED_CYCLE',
          `${name} was called by ${parent.name} and needs ${what}, which ${maker.name} has not finished writing`,
        )
      }
      for (const { read } of maker.accesses) if (read) stack.push(read)
    }
    if (version.team) stack.push(version.team.base)
  }
}

/** Members of a team are not listed, but a caller that is one can be found through its own accesses. */
function makersOf(version: Version, callers: ReadonlySet<Task>): Task[] {
  if (version.producer) return [version.producer]
  return [...callers].filter(caller => caller.accesses.some(({ write }) => write === version))
}
