import type { Placement } from '../schedule/placement.ts'
import { members } from './group.ts'
import type { Group } from './group.ts'
import type { Looks } from './looks.ts'
import type { Task } from './task.ts'

/** What people do to a run that goes on, beside cancelling. It may look at all tasks, since people are slow. */
export class Control {
  readonly #root: Group
  readonly #placement: Placement
  readonly #looks: Looks

  constructor(root: Group, placement: Placement, looks: Looks) {
    this.#root = root
    this.#placement = placement
    this.#looks = looks
  }

  /** Nothing starts; what runs goes on. */
  get isPaused(): boolean {
    return this.#placement.isPaused
  }
  set isPaused(isPaused: boolean) {
    this.#placement.isPaused = isPaused
  }

  /** A task that has not ended. */
  find(id: number): Task | null {
    for (const task of members(this.#root)) if (task.id === id) return task
    return null
  }

  /** Those of its kind, or it alone, that have not begun run earlier or later than it was said. Returns how many. */
  prioritize(task: Task, isForKind: boolean, priority: number): number {
    const tasks = isForKind ? [...members(this.#root)].filter(({ kind }) => kind === task.kind) : [task]
    let count = 0
    for (const one of tasks) {
      if (one.state !== 'waiting' && one.state !== 'ready' && one.state !== 'parked') continue
      this.#placement.prioritize(one, priority, one.state === 'ready' && !this.#looks.has(one))
      count++
    }
    return count
  }
}
