import type { AccessMode, Datum, Version } from './datum.ts'
import { MillraceError } from '../errors.ts'
import type { Task } from '../tasks/task.ts'

/**
 * A task ends only after the tasks that it called. So a called task must not need, directly or through
 * others, that one of its callers ends: all of them would wait for ever.
 */
export function rejectNestedCycle(
  parent: Task,
  name: string,
  accesses: readonly { datum: Datum; mode: AccessMode }[],
): void {
  const callers = new Set<Task>()
  for (let at: Task | null = parent; at; at = at.parent) callers.add(at)
  /** The tasks that it would wait for, each with the one through which it was found. */
  const found = new Map<Task, Task | null>()
  const stack: Task[] = []
  const visit = (tasks: Iterable<Task>, through: Task | null): void => {
    for (const task of tasks) {
      if (found.has(task) || task.ended || task === through) continue
      found.set(task, through)
      stack.push(task)
    }
  }
  for (const { datum, mode } of accesses) {
    const { current, users } = datum
    const team = current.team && !current.team.closed && current.team.mode === mode ? current.team : null
    if (mode !== 'out' || datum.inPlace) visit(makersOf(team ? team.base : current), null)
    if (mode === 'commutative' && team?.holder) visit([team.holder], null)
    if (users && mode !== 'in') visit(usersBefore(users, Infinity, team ? current : null), null)
  }
  for (let task = stack.pop(); task; task = stack.pop()) {
    if (callers.has(task)) throw cycle(parent, name, task, found)
    // What the same caller has called was checked then; a task that is being stopped waits for nothing.
    if (isCalledBy(task, parent) || task.state === 'stopping') continue
    for (const { mode, read, write } of task.accesses) {
      if (read) visit(makersOf(read), task)
      if (mode === 'commutative' && write?.team?.holder) visit([write.team.holder], task)
      const users = write?.datum.users
      if (users) visit(usersBefore(users, task.id, write.team ? write : null), task)
    }
    if (task.calls) visit(task.calls, task)
  }
}

function makersOf(version: Version): Iterable<Task> {
  if (version.settled) return []
  return version.team ? version.team.tasks : version.producer ? [version.producer] : []
}

/** Tasks that a writer of in-place memory waits for: all that came before, but for its own team. */
function* usersBefore(users: Iterable<Task>, id: number, own: Version | null): Generator<Task> {
  for (const user of users) {
    if (user.id < id && !(own && user.accesses.some(({ write }) => write === own))) yield user
  }
}

function isCalledBy(task: Task, caller: Task): boolean {
  for (let at = task.parent; at; at = at.parent) if (at === caller) return true
  return false
}

function cycle(
  parent: Task,
  name: string,
  caller: Task,
  found: ReadonlyMap<Task, Task | null>,
): MillraceError {
  const names: string[] = []
  for (let at: Task | null | undefined = caller; at; at = found.get(at)) names.unshift(at.name)
  return new MillraceError(
    'MR_NESTED_CYCLE',
    `${name} was called by ${parent.name} and would wait for ${names.join(', which waits for ')}`,
  )
}
