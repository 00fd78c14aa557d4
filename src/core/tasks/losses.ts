import type { Task } from './task.ts'

/** What an attempt was lost with. */
export type LostWith = 'thread' | 'spawner' | 'node'

/**
 * What follows when an attempt was lost: the task runs `again` from its inputs, or it is to blame: it ended the thread
 * `itself`, or a task that it `called` did, each time that it ran, or it was lost `repeatedly`.
 */
export type AfterLoss = 'again' | 'itself' | 'called' | 'repeatedly'

/** A task may lose its thread this often to a task that it called. */
const MOST_FALLS = 3
/** A task may be lost this often with the process that starts programs. */
const MOST_WITH_SPAWNER = 2
/** Number of nodes that may be lost under a task that had begun. */
const MOST_WITH_NODE = 3

/** Decides who is to blame for an attempt that was lost, so that no task begins again for ever. */
export class Losses {
  readonly #counts = new WeakMap<Task, number>()

  /** `culprit`: the task that ended the thread, if it is known. */
  after(task: Task, lostWith: LostWith, culprit: Task | null): AfterLoss {
    if (culprit === task) return 'itself'
    if (lostWith === 'spawner') return this.#count(task) >= MOST_WITH_SPAWNER ? 'repeatedly' : 'again'
    if (lostWith === 'node') return this.#count(task) >= MOST_WITH_NODE ? 'repeatedly' : 'again'
    if (!culprit || task.state !== 'blocked') return 'again'
    // Tasks that wait in its thread would be lost again: from now on it gets a thread of its own.
    culprit.kind.endsThreads = true
    return isCallerOf(task, culprit) && this.#count(task) >= MOST_FALLS ? 'called' : 'again'
  }

  #count(task: Task): number {
    const count = (this.#counts.get(task) ?? 0) + 1
    this.#counts.set(task, count)
    return count
  }
}

function isCallerOf(caller: Task, task: Task): boolean {
  for (let at = task.parent; at; at = at.parent) if (at === caller) return true
  return false
}
