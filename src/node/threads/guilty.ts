import type { Task } from '../../core/tasks/task.ts'
import { attemptOf } from '../job.ts'

/** A thread that has ended before its time. */
export interface ThreadEnd {
  readonly thread: number
  readonly reason: string
  /** Whether the thread had begun with what was at a position of its ring. */
  taken(position: number): boolean
  /** The task that began last, where one runs at a time. */
  readonly last: number
  /** Threads end before they begin with anything, one after the other. */
  readonly isHopeless: boolean
  /** We stopped it. */
  readonly isKilled: boolean
  /** Its machine was lost: no task is to blame. */
  readonly isCutOff: boolean
}

/** Which of the attempts in the thread ended it, in the order in which they were sent; null when none can be. */
export function guiltyOf(tasks: readonly Task[], { taken, last, isKilled }: ThreadEnd): Task | null {
  const killed = tasks.find(task => attemptOf(task).state === 'killed')
  // The task that it was stopped for may have ended before that, and the thread may have begun with the next one.
  if (killed || isKilled) return killed ?? null
  const began = tasks.filter(task => task.state !== 'blocked')
  const isTaken = (task: Task): boolean => {
    const { position } = attemptOf(task)
    return position !== null && taken(position)
  }
  return (
    began.find(task => (task.id | 0) === last) ??
    began.find(isTaken) ??
    began.find(task => attemptOf(task).position === null) ??
    null
  )
}
