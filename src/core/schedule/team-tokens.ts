import { Heap } from '../../general/heap.ts'
import type { Access, Team } from '../data/datum.ts'
import type { Task } from '../tasks/task.ts'
import { suits } from './machine.ts'
import type { Node } from './machine.ts'
import { before } from './ready-queue.ts'

/**
 * Which members of a team may run. COMMUTATIVE members run one at a time: the one that runs holds the team's token. CONCURRENT
 * members that write the same memory all run on one node. Members that have to wait for others are parked.
 */
export class TeamTokens {
  readonly #nodes: readonly Node[]
  readonly #hasSeveral: boolean

  constructor(nodes: readonly Node[], mayGrow: boolean) {
    this.#nodes = nodes
    this.#hasSeveral = nodes.length > 1 || mayGrow
  }

  /** Whether a task with this access runs where others of its team run. */
  bindsToNode(access: Access): boolean {
    return this.#hasSeveral && this.#sharedTeam(access) !== null
  }

  /** The node on which members of a team of the task run now. */
  node({ accesses }: Task): Node | null {
    if (!this.#hasSeveral) return null
    for (const access of accesses) {
      const node = this.#sharedTeam(access)?.node ?? null
      if (node !== null) return this.#nodes[node] ?? null
    }
    return null
  }

  /** A team that keeps the task from running now. */
  busyTeam(task: Task): Team | null {
    if (task.queueable) return null
    for (const { mode, write } of task.accesses) {
      if (mode === 'commutative' && write?.team?.holder) return write.team
    }
    return this.#hasSeveral ? this.#teamElsewhere(task) : null
  }

  /** A team of the task that runs where this task cannot. */
  #teamElsewhere(task: Task): Team | null {
    let at: number | null = null
    for (const access of task.accesses) {
      const team = this.#sharedTeam(access)
      const node = team?.node ?? null
      if (!team || node === null) continue
      const canJoin = !task.demand.io && (at ?? node) === node && suits(this.#nodes[node] as Node, task)
      if (!canJoin) return team
      at = node
    }
    return null
  }

  park(task: Task, team: Team): void {
    team.parked ??= new Heap(before)
    team.parked.push(task)
  }

  take(task: Task): void {
    if (task.queueable) return
    for (const access of task.accesses) {
      const { mode, write } = access
      if (mode === 'commutative' && write?.team) write.team.holder = task
      if (this.#hasSeveral) this.#sharedTeam(access)?.runsOn(task.node, task)
    }
  }

  /** Gives back the task's tokens. */
  release(task: Task): void {
    if (task.queueable) return
    for (const { write } of task.accesses) {
      if (!write?.team) continue
      if (write.team.holder === task) write.team.holder = null
      write.team.together?.delete(task)
    }
  }

  /**
   * Takes the best parked member of a team of which none runs. One is enough, because whenever a ready member
   * goes away without taking the token, the next is asked for: while some are parked, one is ready or runs.
   */
  nextParked(team: Team): Task | null {
    if (team.holder || team.node !== null || !team.parked) return null
    for (let task = team.parked.pop(); task; task = team.parked.pop()) {
      if (task.state !== 'parked') continue
      const other = this.busyTeam(task)
      if (!other) return task
      this.park(task, other)
    }
    return null
  }

  /** The team of tasks that write memory at the same time. Files are for the file system, if all nodes see the same. */
  #sharedTeam({ mode, write }: Access): Team | null {
    if (mode !== 'concurrent' || !write) return null
    return write.datum.path === null || this.#nodes.some(({ isApart }) => isApart) ? write.team : null
  }
}
