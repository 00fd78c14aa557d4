import type { Access, Version } from './datum.ts'
import { FORMS } from '../tasks/form.ts'
import type { Task } from '../tasks/task.ts'

/**
 * Firing as it grows (`no_update`): a version that commands may read while its producer still writes it. It is
 * open while an attempt of the producer runs. Who follows it holds no CPU: most of the time it waits for bytes,
 * and with fewer CPUs than steps its producer could not run beside it.
 */
export class Growth {
  open = false
  /** Tasks that were started on it before it was committed, and have not ended since. */
  readonly followers = new Set<Task>()
}

export function markGrowing({ write }: Access): void {
  if (write) write.growth ??= new Growth()
}

/** Only programs can be made to wait inside a read; functions wait for the commit. */
export const canFollow = (task: Task): boolean => FORMS[task.kind.form].streamsFiles && !task.demand.io

/** An input that the task cannot start without. */
export const keepsWaiting = (task: Task, version: Version): boolean =>
  version.state === 'pending' && !(version.growth?.open === true && canFollow(task))

/** It runs, or is to run, on data that are not committed. What was lost and is made again has no growth. */
export const isFollower = (task: Task): boolean =>
  FORMS[task.kind.form].streamsFiles &&
  task.accesses.some(({ read }) => read?.state === 'pending' && read.growth !== null)

/** Takes those who can follow out of the list of waiters. */
export function takeFollowers(version: Version): Task[] {
  const waiters = version.waiters ?? []
  const taken = waiters.filter(task => task.state === 'waiting' && canFollow(task))
  const left = waiters.filter(task => !taken.includes(task))
  version.waiters = left.length > 0 ? left : null
  return taken
}
