import { chargeFor, isShort } from './machine.ts'
import type { Lane, Node } from './machine.ts'
import type { Policy } from './policy.ts'
import { ReadyQueue } from './ready-queue.ts'
import type { Demand, Implementation, Task } from './task.ts'

/** Which ready task starts next, where, and in which of its versions. */
export class Placement {
  readonly queue = new ReadyQueue()
  readonly #nodes: readonly Node[]
  readonly #policy: Policy

  constructor(nodes: readonly Node[], policy: Policy) {
    this.#nodes = nodes
    this.#policy = policy
  }

  enqueue(task: Task, releasedBy: Task | null): void {
    task.bypassed = 0
    this.queue.push(task)
    if (this.#policy.successorsFirst && releasedBy && releasedBy.lane >= 0) {
      this.#laneOf(releasedBy)?.released.push(task)
    }
  }

  /** A queued task will not start after all. */
  forget(): void {
    this.queue.forget()
  }

  decide(start: (task: Task) => void, resume: (task: Task) => void, park: (task: Task) => void): void {
    for (const node of this.#nodes) if (node.claims > 0) this.#resume(node, resume)
    if (this.queue.size === 0) return
    if (this.#policy.successorsFirst) this.#placeSuccessors(start)
    const place = (task: Task): boolean => {
      if (this.#busyToken(task)) {
        this.#park(task)
        park(task)
        return false
      }
      return this.#place(task)
    }
    for (let task = this.queue.take(place); task; task = this.queue.take(place)) start(task)
  }

  demandOf(task: Task): Demand {
    return task.implementation.demand ?? task.demand
  }

  release(task: Task): void {
    this.#nodes[task.node]?.release(task, this.demandOf(task))
  }

  // --- blocked tasks ---

  claim(task: Task): void {
    const node = this.#nodes[task.node] as Node
    node.claims++
    node.lanes[task.lane]?.resuming.push(task)
  }

  forgetBlocked(task: Task): void {
    const node = this.#nodes[task.node] as Node
    if (node.lanes[task.lane]?.resuming.remove(task)) node.claims--
  }

  /** A blocked task that is being stopped holds nothing; give it a lane entry so that releasing is uniform. */
  holdBlocked(task: Task): void {
    this.forgetBlocked(task)
    task.node = -1
  }

  #resume(node: Node, resume: (task: Task) => void): void {
    for (const lane of node.lanes) {
      const task = lane.resuming.peek()
      if (!task || !node.canResume(task, this.demandOf(task))) continue
      lane.resuming.shift()
      node.claims--
      node.occupy(task, this.demandOf(task), lane)
      resume(task)
    }
  }

  // --- commutative tokens ---

  #busyToken(task: Task): boolean {
    return task.accesses.some(({ mode, write }) => mode === 'commutative' && write?.team?.holder)
  }

  #park(task: Task): void {
    const busy = task.accesses.find(({ mode, write }) => mode === 'commutative' && write?.team?.holder)
    busy?.write?.team?.parked.push(task)
  }

  unpark(task: Task): void {
    for (const { write } of task.accesses) {
      const parked = write?.team?.parked
      const at = parked?.indexOf(task) ?? -1
      if (at >= 0) parked?.splice(at, 1)
    }
  }

  /** Gives back the task's tokens; returns the tasks that waited for one of them. */
  releaseTokens(task: Task): Task[] {
    if (task.queueable) return NONE
    const woken: Task[] = []
    for (const { write } of task.accesses) {
      const team = write?.team
      if (team?.holder !== task) continue
      team.holder = null
      woken.push(...team.parked)
      team.parked = []
    }
    return woken
  }

  #takeTokens(task: Task): void {
    if (task.queueable) return
    for (const { mode, write } of task.accesses)
      if (mode === 'commutative' && write?.team) write.team.holder = task
  }

  // --- nodes and lanes ---

  #laneOf(task: Task): Lane | undefined {
    return this.#nodes[task.node]?.lanes[task.lane]
  }

  /** Each lane that has just become free takes first what its last task released. */
  #placeSuccessors(start: (task: Task) => void): void {
    for (const node of this.#nodes) {
      for (const lane of node.lanes) {
        if (lane.released.length === 0) continue
        const [first] = lane.released.filter(task => task.state === 'ready').sort(byRank)
        lane.released = []
        if (!first || !lane.free || first.kind.implementations.length > 1) continue
        if (this.#busyToken(first) || !node.fitsNow(first.demand)) continue
        this.queue.forget()
        this.#occupy(first, node, first.implementation, lane)
        start(first)
      }
    }
  }

  #place(task: Task): boolean {
    for (const node of this.#nodes) {
      const implementation = this.#choose(task, node)
      if (implementation) {
        this.#occupy(task, node, implementation, null)
        return true
      }
    }
    return task.queueable && this.#queueOnLane(task)
  }

  /** Each version of a task is tried once; then the fastest that fits is taken. */
  #choose(task: Task, node: Node): Implementation | null {
    const { implementations } = task.kind
    if (implementations.length === 1)
      return node.fitsNow(task.demand) ? (implementations[0] as Implementation) : null
    let best: Implementation | null = null
    for (const one of implementations) {
      if (!node.fitsNow(one.demand ?? task.demand)) continue
      if (one.begun === 0) return one
      if (!best || speed(one) < speed(best)) best = one
    }
    return best
  }

  #occupy(task: Task, node: Node, implementation: Implementation, prefer: Lane | null): void {
    implementation.begun++
    task.implementation = implementation
    task.node = node.index
    const lane = node.occupy(task, implementation.demand ?? task.demand, prefer)
    task.lane = lane.index
    task.charge = chargeFor(implementation.estimate)
    lane.load += task.charge
    this.#takeTokens(task)
  }

  #queueOnLane(task: Task): boolean {
    const { implementation } = task
    if (task.kind.implementations.length > 1 || !isShort(implementation.estimate)) return false
    for (const node of this.#nodes) {
      if (!node.suits(task.demand)) continue
      const lane = node.shallowLane()
      if (!lane) continue
      implementation.begun++
      task.node = node.index
      task.lane = lane.index
      task.charge = chargeFor(implementation.estimate)
      lane.queue.push(task)
      lane.load += task.charge
      return true
    }
    return false
  }
}

const NONE: Task[] = []

const byRank = (a: Task, b: Task): number => b.priority - a.priority || a.turn - b.turn

/** A version that is being tried and has no time yet must not be taken for the fastest. */
const speed = (implementation: Implementation): number => implementation.estimate
