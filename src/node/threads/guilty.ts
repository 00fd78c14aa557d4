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
  /** Its machine was lost: no task is to blame. */
  readonly isCutOff: boolean
}

/** Which of the attempts in the thread ended it, in the order in which they were sent; null when none can be. */
export function guiltyOf(tasks: readonly Task[], { taken, last }: ThreadEnd): Task | null {
  const began = tasks.filter(task => task.state !== 'blocked')
  const isTaken = (task: Task): boolean => {
    const { position } = attemptOf(task)
    return position !== null && taken(position)
  }
  return (
    tasks.find(task => attemptOf(task).state === 'killed') ??
    began.find(task => (task.id | 0) === last) ??
    began.find(isTaken) ??
    began.find(task => attemptOf(task).position === null) ??
    null
  )
}
