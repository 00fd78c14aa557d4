import { isFollower, keepsWaiting } from '../data/growing.ts'
import type { Observer } from '../events.ts'
import type { Instructions } from '../instruction.ts'
import type { IoCore } from '../io/io-core.ts'
import type { Looks } from '../tasks/looks.ts'
import { startedEvent } from '../tasks/submission.ts'
import type { Task } from '../tasks/task.ts'
import { suits } from './machine.ts'
import type { Node } from './machine.ts'
import type { Placement } from './placement.ts'
import { fifo, scoreOf } from './policy.ts'
import type { Policy } from './policy.ts'

/** What the parts of the engine have in common. */
export interface EngineParts {
  /** May change while the run goes on. */
  readonly observed: { readonly observer: Observer | null }
  readonly nodes: readonly Node[]
  readonly policy: Policy
  readonly io: IoCore
  readonly placement: Placement
  readonly instructions: Instructions
}

/** Brings tasks to the queue: when their inputs are there, when they are to run again, and when a token is free. */
export class Readiness {
  readonly looks: Looks
  readonly #parts: EngineParts
  #turn = 0
  /** What a policy of the user threw; it is thrown on when everything else is in order. */
  #fault: unknown = null
  /** Tasks that read growing files, or did when this was looked at last: they have no CPU, and will want one. */
  readonly #followers = new Set<Task>()
  /** The task whose end, or release, is being worked through: what becomes ready is released by it. */
  releasedBy: Task | null = null

  constructor(parts: EngineParts) {
    this.#parts = parts
    this.looks = parts.placement.looks
  }

  /** All that the task waited for is there. */
  ready(task: Task, now: number): void {
    const { policy, observed, instructions } = this.#parts
    const at = task.move('ready', now)
    task.turn = ++this.#turn
    // The default treats all alike, and is asked for every task.
    if (policy !== fifo) this.#score(task, now)
    observed.observer?.({ type: 'ready', at, task: task.id })
    if (this.looks.wants === null || !this.looks.begin(task, instructions)) this.queue(task, now)
  }

  /** It is to run. */
  queue(task: Task, now: number): void {
    const { io, placement } = this.#parts
    if (io.moves.prefetches) io.moves.want(task, 1)
    if (isFollower(task)) this.#follow(task, now)
    else placement.enqueue(task, this.releasedBy)
  }

  /** It keeps its turn: it was in the queue before, where an entry of it may even be left. */
  again(task: Task, now: number): void {
    task.startedAt = -1
    this.#parts.io.bound?.again(task)
    const missing = task.accesses.filter(({ read }) => read && keepsWaiting(task, read))
    if (missing.length > 0) {
      task.missing = missing.length
      for (const { read } of missing) if (read) (read.waiters ??= []).push(task)
      task.move('waiting', now)
      return
    }
    task.move('ready', now)
    for (const { read } of task.accesses) if (read?.growth?.open) read.growth.followers.add(task)
    if (isFollower(task)) this.#follow(task, now)
    else this.#parts.placement.enqueue(task, null)
  }

  /** Lets the next ones try for each team that this task does not hold or want any more. */
  wakeParked(task: Task, now: number): void {
    if (task.queueable) return
    const { placement } = this.#parts
    for (const { write } of task.accesses) {
      const team = write?.team
      if (!team) continue
      for (let next = placement.tokens.nextParked(team); next; next = placement.tokens.nextParked(team)) {
        next.move('ready', now)
        placement.enqueue(next, null)
        // Of COMMUTATIVE members one can run; CONCURRENT ones may all find a place on one node.
        if (team.mode === 'commutative') break
      }
    }
  }

  /** The task has begun, unless that is known. */
  started(task: Task, now: number): void {
    if (task.startedAt >= 0) return
    task.startedAt = now
    const { observed } = this.#parts
    observed.observer?.(startedEvent(task, task.attemptDemand.cpus, now))
  }

  /** What the blocked task waited for is there: it wants a CPU again. */
  unblocked(task: Task): void {
    if (task.state !== 'blocked') return
    if (task.demand.io) this.#parts.io.unblocked(task)
    else this.#parts.placement.blocked.claim(task)
  }

  /** Throws what a policy threw. */
  rethrow(): void {
    if (this.#fault === null) return
    const fault = this.#fault
    this.#fault = null
    throw fault
  }

  /** Starts it at once, and without a CPU. */
  #follow(task: Task, now: number): void {
    const { nodes, instructions, observed } = this.#parts
    task.node = this.#nodeToFollowOn(task)
    task.lane = task.id % (nodes[task.node]?.lanes.length ?? 1)
    task.move('running', now)
    instructions.push({ type: 'start', task })
    this.started(task, now)
    task.move('blocked', now)
    observed.observer?.({
      type: 'blocked',
      at: now,
      task: task.id,
      reason: 'it reads what is still being written',
    })
  }

  /**
   * The node of its producer, while that has a CPU for it as soon as its input is complete; else the one with most such CPUs:
   * the file goes there as it grows.
   */
  #nodeToFollowOn(task: Task): number {
    const nodes = this.#parts.nodes.filter(node => suits(node, task) && !node.isPaused)
    const room = new Map(nodes.map(node => [node, node.freeLanes]))
    for (const other of this.#followers) {
      const node = this.#parts.nodes[other.node]
      if (other.state !== 'blocked') this.#followers.delete(other)
      else if (node) room.set(node, (room.get(node) ?? 0) - 1)
    }
    this.#followers.add(task)
    const roomOn = (node: Node): number => room.get(node) ?? 0
    const growing = task.accesses.find(({ read }) => read?.state === 'pending' && read.growth !== null)
    const home = nodes.find(({ index }) => index === growing?.read?.producer?.node)
    if (home && roomOn(home) > 0) return home.index
    let best = home ?? nodes[0]
    for (const node of nodes) if (roomOn(node) > Math.max(0, best ? roomOn(best) : 0)) best = node
    return best?.index ?? this.#parts.nodes.findIndex(node => suits(node, task))
  }

  #score(task: Task, now: number): void {
    try {
      task.score = scoreOf(this.#parts.policy, task, { now, turn: task.turn, releasedBy: this.releasedBy })
    } catch (error) {
      this.#fault ??= error
    }
  }
}
