import type { Locality } from './locality.ts'
import type { Node } from './machine.ts'
import { placeOf } from './policy.ts'
import type { Place, Policy } from './policy.ts'
import { before } from './ready-queue.ts'
import type { Head, Placer, ReadyQueue } from './ready-queue.ts'
import type { Demand } from '../tasks/demand.ts'
import type { Task } from '../tasks/task.ts'

/** What the queues ask about nodes. */
export interface NodePlacer extends Placer {
  /** The first node from this one on with a free lane, that is not kept for a task. */
  next(from: number): Node | null
  /** The same for tasks of one node only. */
  at(node: Node): Placer
  isHeld(node: Node): boolean
}

/** With more queues than these, the number tried in vain before a node waits for tasks of its own. */
const TRIES = 64
/** With fewer queues than these it is quicker to look at them than for them. */
const SCAN_LIMIT = 64

/**
 * Several nodes: each has a queue of the tasks that are close to their inputs there, and one queue is for all. A node
 * takes from its own and from that of all, and steals when both have nothing for it, so that none is idle while
 * there is work. The highest priority comes first, on whatever node; with very many nodes, tasks that have one are in the queue of all.
 */
export class NodeQueues<Q extends ReadyQueue> {
  size = 0
  readonly locality: Locality
  readonly own: Q[]
  readonly anywhere: Q
  /** Tasks that run on one node only, by its number. */
  readonly #fixed = new Map<number, Q>()
  readonly #nodes: readonly Node[]
  readonly #homes = new WeakMap<Task, Q>()
  /** Own queues that are not empty, and the numbers of their nodes. */
  readonly #filled = new Map<Q, number>()
  readonly #indexOf = new Map<Q, number>()
  readonly #make: (cores: number) => Q
  /** What is in a cache comes before what is in none, so the own queue before that of all. */
  readonly #ownFirst: boolean
  /** By demand; null: there are several nodes for it, or none. */
  #onlyNodes = new WeakMap<Demand, number | null>()
  readonly #policy: Policy
  /** Tasks with a priority have been in own queues. */
  #hasPriorities = false
  #queueable = 0
  /** The graph was divided among nodes. */
  #isAssigned = false

  constructor(nodes: readonly Node[], make: (cores: number) => Q, policy: Policy, locality: Locality) {
    this.locality = locality
    this.#nodes = nodes
    this.#make = make
    this.own = []
    for (const node of nodes) this.joined(node)
    this.anywhere = make(
      Math.max(
        1,
        nodes.reduce((sum, node) => sum + node.cpus, 0),
      ),
    )
    this.#ownFirst = policy.choose !== undefined
    this.#policy = policy
  }

  /** There is one node more. */
  joined(node: Node): void {
    const queue = this.#make(node.cpus)
    this.#indexOf.set(queue, this.own.length)
    this.own.push(queue)
    this.#onlyNodes = new WeakMap()
  }

  /** A node that is lost, paused or about to end lets go of the tasks that were to run there only. */
  changed(node: Node): void {
    const queue = this.#fixed.get(node.index)
    if (!queue || isLasting(node)) return
    this.#fixed.delete(node.index)
    this.#indexOf.delete(queue)
    this.#filled.delete(queue)
    this.size -= queue.size
    for (let task = queue.take(TAKES_ALL); task; task = queue.take(TAKES_ALL)) {
      if (task.queueable) this.#queueable--
      this.#homes.delete(task)
      this.push(task)
    }
  }

  /** The only node on which the task may run, if the policy has said so. */
  fixedNode(task: Task): Node | undefined {
    const home = this.#fixed.size > 0 ? this.#homes.get(task) : undefined
    const index = home && this.#indexOf.get(home)
    return index !== undefined && this.#fixed.get(index) === home ? this.#nodes[index] : undefined
  }

  nodesFor(task: Task): readonly Node[] {
    const fixed = this.fixedNode(task)
    return fixed ? [fixed] : this.#nodes
  }

  /** Those that have tasks which could run on a node. */
  servedBy(node: number): (Q | undefined)[] {
    return [this.own[node], this.#fixed.get(node), this.anywhere]
  }

  queueOf(task: Task): Q {
    return this.#homes.get(task) ?? this.anywhere
  }

  push(task: Task): void {
    // A task that comes again stays in its queue: its stale entry there would be taken for it, and another task lost.
    const known = this.#homes.get(task)
    const isThere = known && (known === this.anywhere || this.#indexOf.has(known))
    const queue = isThere ? known : this.#home(task)
    this.#homes.set(task, queue)
    if (task.priority !== 0 && queue !== this.anywhere) this.#hasPriorities = true
    queue.push(task)
    this.#note(queue)
    this.#count(task, 1)
  }

  forget(task: Task): void {
    const queue = this.queueOf(task)
    queue.forget(task)
    this.#note(queue)
    this.#count(task, -1)
  }

  /** Takes the task out at once; it may then come to another queue. */
  withdraw(task: Task): void {
    const queue = this.queueOf(task)
    queue.withdraw(task)
    this.#homes.delete(task)
    this.#note(queue)
    this.#count(task, -1)
  }

  take(placer: NodePlacer): Task | null {
    // A task is not stolen from a node that could start it now.
    const found = this.#takeNear(placer)
    if (found) return found
    for (let node = placer.next(0); node && this.size > 0; node = placer.next(node.index + 1)) {
      const task = this.#takeFor(node, placer, this.#others(node))
      if (task) return task
    }
    return this.#queueable > 0 ? this.#behindOthers(placer) : null
  }

  heads(): Head[] {
    return [this.anywhere, ...this.own, ...this.#fixed.values()].flatMap(queue =>
      queue.size > 0 ? queue.heads() : [],
    )
  }

  #home(task: Task): Q {
    if (task.io || (task.priority !== 0 && this.own.length > SCAN_LIMIT)) return this.anywhere
    if (this.#policy.place) return this.#wanted(task)
    const { near } = task
    const isSuited = (node: number): boolean =>
      task.kind.implementations.some(({ demand }) => this.#nodes[node]?.suits(demand ?? task.demand))
    if (near >= 0 && isSuited(near)) {
      this.#isAssigned = true
      return this.own[near] as Q
    }
    const close = this.locality.candidates(task).find(isSuited) ?? this.#onlyNode(task)
    return (close === undefined ? undefined : this.own[close]) ?? this.anywhere
  }

  /** Where the policy wants it. */
  #wanted(task: Task): Q {
    const { on, all: allBytes } = this.locality.bytes(task)
    const places: Place[] = []
    for (const node of this.#nodes) {
      const fitting = task.kind.implementations.filter(({ demand }) => node.suits(demand ?? task.demand))
      if (fitting.length === 0) continue
      const { index, name, cpus, freeLanes: freeCpus, tags } = node
      const implementations = fitting.map(implementation => implementation.name)
      const bytes = on(index)
      places.push({ node: index, name, cpus, freeCpus, tags, implementations, bytes, allBytes, all: places })
    }
    const wanted = placeOf(this.#policy, task, places)
    if (wanted?.isOnly && isLasting(this.#nodes[wanted.node] as Node)) return this.#fixedQueue(wanted.node)
    return (wanted ? this.own[wanted.node] : undefined) ?? this.anywhere
  }

  #fixedQueue(index: number): Q {
    let queue = this.#fixed.get(index)
    if (queue) return queue
    queue = this.#make((this.#nodes[index] as Node).cpus)
    this.#fixed.set(index, queue)
    this.#indexOf.set(queue, index)
    return queue
  }

  /** The node that a task is for, if no other one is: it counts there, also before anything that it reads does. */
  #onlyNode({ kind, demand: { alike } }: Task): number | undefined {
    if (kind.implementations.length > 1) return undefined
    const known = this.#onlyNodes.get(alike)
    if (known !== undefined) return known ?? undefined
    const first = this.#nodes.findIndex(node => node.suits(alike))
    const isOnly = first >= 0 && !this.#nodes.some((node, i) => i > first && node.suits(alike))
    this.#onlyNodes.set(alike, isOnly ? first : null)
    return isOnly ? first : undefined
  }

  #takeFor(node: Node, placer: NodePlacer, queues: Iterable<Q>): Task | null {
    const at = placer.at(node)
    const passed: Q[] = []
    for (const queue of queues) {
      if (queue.size === 0) continue
      const task = this.#takeFrom(queue, at)
      if (task) {
        // A task that waits for more room than there is must not wait for ever.
        for (const other of passed) {
          for (const head of other.heads()) if (at.inTheWay(task, head.task)) head.task.bypassed++
        }
        return task
      }
      if (placer.isHeld(node)) return null
      passed.push(queue)
    }
    return null
  }

  /** Looks at free nodes, or at those that have something to do, of which there may be far fewer. */
  #takeNear(placer: NodePlacer): Task | null {
    const filled = this.#filled.values()
    for (let node = placer.next(0); node && this.size > 0; node = placer.next(node.index + 1)) {
      const task = this.#takeFor(node, placer, this.#nearby(node, placer))
      if (task) return task
      if (this.anywhere.size > 0) continue
      const { value: index } = filled.next()
      if (index === undefined) return null
      const other = placer.next(index)
      const mine = other?.index === index ? this.#takeFor(other, placer, this.#nearby(other, placer)) : null
      if (mine) return mine
    }
    return null
  }

  /** What a node looks into first. */
  #nearby(node: Node, placer: NodePlacer): Q[] {
    const own = this.own[node.index] as Q
    const fixed = this.#fixed.get(node.index)
    if (this.#hasPriorities) {
      // Others begin what is close to them themselves, where they have a CPU for it.
      const busy = this.#stealable().filter(([, index]) => placer.next(index)?.index !== index)
      const queues = [own, this.anywhere, ...busy.map(([queue]) => queue)]
      return byPriority(fixed ? [fixed, ...queues] : queues)
    }
    const first = this.#first()
    const queues =
      !first || first.priority < 0
        ? [own]
        : this.#isBefore(first, own)
          ? [this.anywhere, own]
          : [own, this.anywhere]
    if (!fixed || fixed.size === 0) return queues
    // What is in it has no other taker, but the order among tasks of equal priority is that of the policy.
    const at = queues.findIndex(queue => !this.#isBefore(queue.heads()[0]?.task, fixed))
    return queues.toSpliced(at < 0 ? queues.length : at, 0, fixed)
  }

  /** Own queues that are not empty: what is for one node only is not among them. */
  #stealable(): [Q, number][] {
    const filled = [...this.#filled]
    return this.#fixed.size === 0 ? filled : filled.filter(([queue, index]) => this.own[index] === queue)
  }

  /** What it steals from, and what comes after all others: one by one, as most find something in the first. */
  *#others({ index }: Node): Generator<Q> {
    const count = this.own.length
    if (this.#filled.size < SCAN_LIMIT) {
      const distance = (other: number): number => (other - index + count) % count
      const byDistance = this.#stealable().sort(([, a], [, b]) => distance(a) - distance(b))
      for (const [queue, other] of byDistance) if (other !== index && !this.#isKept(other)) yield queue
    } else {
      let tries = TRIES
      for (let i = 1; i < count && tries > 0; i++) {
        const at = (index + i) % count
        const other = this.own[at] as Q
        if (other.size === 0 || this.#isKept(at)) continue
        tries--
        yield other
      }
    }
    if ((this.#first()?.priority ?? 0) < 0) yield this.anywhere
  }

  /**
   * What was assigned to a node waits for it if it will begin there within about one round: its data are there. Not where the node may
   * never begin it.
   */
  #isKept(index: number): boolean {
    if (!this.#isAssigned || index < 0) return false
    const node = this.#nodes[index] as Node
    const { cpus, freeLanes } = node
    const isAtWork = freeLanes < cpus && isLasting(node)
    return isAtWork && (this.own[index] as Q).size <= cpus
  }

  #first(): Task | undefined {
    return this.anywhere.size > 0 ? this.anywhere.heads()[0]?.task : undefined
  }

  #isBefore(first: Task | undefined, own: Q): boolean {
    if (!first) return false
    if (first.priority !== 0) return first.priority > 0
    if (this.#ownFirst || own.size === 0) return false
    const head = own.heads()[0]?.task
    return head === undefined || before(first, head)
  }

  #takeFrom(queue: Q, at: Placer): Task | null {
    const size = queue.size
    const task = queue.take(at)
    // Some may have been set aside.
    this.size += queue.size - size
    this.#note(queue)
    if (task?.queueable) this.#queueable--
    return task
  }

  /** No lane is free, but short tasks may queue on one. */
  #behindOthers(placer: NodePlacer): Task | null {
    let tries = TRIES
    const all = [this.anywhere, ...this.#stealable().map(([queue]) => queue)]
    // A lane that is free was not for these.
    const isFree = this.#isAssigned && placer.next(0) !== null
    for (const queue of this.#hasPriorities ? byPriority(all) : all) {
      if (queue.size === 0 || (isFree && this.#isKept(this.#indexOf.get(queue) ?? -1))) continue
      const task = this.#takeFrom(queue, { ...placer, hold: () => false })
      if (task || --tries === 0) return task
    }
    return null
  }

  #note(queue: Q): void {
    const index = this.#indexOf.get(queue)
    if (index === undefined) return
    if (queue.size === 0) this.#filled.delete(queue)
    else this.#filled.set(queue, index)
  }

  #count(task: Task, by: number): void {
    this.size += by
    if (task.queueable) this.#queueable += by
  }
}

const TAKES_ALL: Placer = { place: () => true, hold: () => false, inTheWay: () => false }

/** Whether what waits for the node, and for no other one, will run there. */
const isLasting = ({ isLost, isPaused, until }: Node): boolean => !isLost && !isPaused && until === Infinity

/** By the priority of the first task; among equals as they are given. */
function byPriority<Q extends ReadyQueue>(queues: readonly Q[]): Q[] {
  const highest = (queue: Q): number => Math.max(...queue.heads().map(({ task }) => task.priority))
  return [...new Set(queues)]
    .filter(queue => queue.size > 0)
    .map(queue => ({ queue, priority: highest(queue) }))
    .sort((a, b) => b.priority - a.priority)
    .map(({ queue }) => queue)
}
