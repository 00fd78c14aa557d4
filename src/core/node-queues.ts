import type { Locality } from './locality.ts'
import type { Node } from './machine.ts'
import { before } from './ready-queue.ts'
import type { Head, Placer, ReadyQueue } from './ready-queue.ts'
import type { Demand } from './demand.ts'
import type { Task } from './task.ts'

/** What the queues ask of whoever knows the nodes. */
export interface NodePlacer extends Placer {
  /** The first node from this one on with a free lane, that is not kept for a task. */
  next(from: number): Node | null
  /** The same for tasks of one node only. */
  at(node: Node): Placer
  isHeld(node: Node): boolean
}

/** So many queues are looked into in vain before a node waits for what comes to its own. */
const TRIES = 4
/** With fewer queues than these it is quicker to look at them than for them. */
const FEW = 64

/**
 * Several nodes: each has a queue of the tasks that are close to their inputs there, and one queue is for all. A node
 * takes from its own and from that of all, and steals when both have nothing for it, so that none is idle while
 * there is work. Being close counts among tasks of priority 0; others are in the queue of all, before or after them.
 */
export class NodeQueues<Q extends ReadyQueue> {
  size = 0
  readonly locality: Locality
  readonly own: readonly Q[]
  readonly anywhere: Q
  readonly #nodes: readonly Node[]
  readonly #homes = new WeakMap<Task, Q>()
  /** Own queues that are not empty, and the numbers of their nodes. */
  readonly #filled = new Map<Q, number>()
  readonly #indexOf: ReadonlyMap<Q, number>
  /** What is in a cache comes before what is in none, so the own queue before that of all. */
  readonly #ownFirst: boolean
  /** By demand; null: there are several nodes for it, or none. */
  readonly #onlyNodes = new WeakMap<Demand, number | null>()
  #queueable = 0

  constructor(nodes: readonly Node[], make: (cores: number) => Q, ownFirst: boolean, locality: Locality) {
    this.locality = locality
    this.#nodes = nodes
    this.own = nodes.map(node => make(node.cpus))
    this.#indexOf = new Map(this.own.map((queue, i) => [queue, i]))
    this.anywhere = make(nodes.reduce((sum, node) => sum + node.cpus, 0))
    this.#ownFirst = ownFirst
  }

  queueOf(task: Task): Q {
    return this.#homes.get(task) ?? this.anywhere
  }

  push(task: Task): void {
    // One that comes again stays where it was: what is left of it there would be taken for it, and another one lost.
    const queue = this.#homes.get(task) ?? this.#home(task)
    this.#homes.set(task, queue)
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

  take(placer: NodePlacer): Task | null {
    // Nobody steals what the node that it is close to could begin itself.
    const found = this.#takeNear(placer)
    if (found) return found
    for (let node = placer.next(0); node && this.size > 0; node = placer.next(node.index + 1)) {
      const task = this.#takeFor(node, placer, this.#others(node))
      if (task) return task
    }
    return this.#queueable > 0 ? this.#behindOthers(placer) : null
  }

  heads(): Head[] {
    return [this.anywhere, ...this.own].flatMap(queue => (queue.size > 0 ? queue.heads() : []))
  }

  #home(task: Task): Q {
    if (task.priority !== 0 || task.io) return this.anywhere
    const isSuited = (node: number): boolean =>
      task.kind.implementations.some(({ demand }) => this.#nodes[node]?.suits(demand ?? task.demand))
    const close = this.locality.candidates(task).find(isSuited) ?? this.#onlyNode(task)
    return (close === undefined ? undefined : this.own[close]) ?? this.anywhere
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
        // Who waits for more room than there is must not wait for ever.
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
      const task = this.#takeFor(node, placer, this.#nearby(node))
      if (task) return task
      if (this.anywhere.size > 0) continue
      const { value: index } = filled.next()
      if (index === undefined) return null
      const other = placer.next(index)
      const mine = other?.index === index ? this.#takeFor(other, placer, this.#nearby(other)) : null
      if (mine) return mine
    }
    return null
  }

  /** What a node looks into first. */
  #nearby(node: Node): Q[] {
    const own = this.own[node.index] as Q
    const first = this.#first()
    if (!first || first.priority < 0) return [own]
    return this.#isBefore(first, own) ? [this.anywhere, own] : [own, this.anywhere]
  }

  /** What it steals from, and what comes after all others. */
  #others({ index }: Node): Q[] {
    const count = this.own.length
    const distance = (other: number): number => (other - index + count) % count
    let found: Q[] = []
    if (this.#filled.size < FEW) {
      const byDistance = [...this.#filled].sort(([, a], [, b]) => distance(a) - distance(b))
      found = byDistance.flatMap(([queue, other]) => (other === index ? [] : [queue])).slice(0, TRIES)
    } else {
      for (let i = 1; i < count && found.length < TRIES; i++) {
        const other = this.own[(index + i) % count] as Q
        if (other.size > 0) found.push(other)
      }
    }
    if ((this.#first()?.priority ?? 0) < 0) found.push(this.anywhere)
    return found
  }

  #first(): Task | undefined {
    return this.anywhere.size > 0 ? this.anywhere.heads()[0]?.task : undefined
  }

  #isBefore(first: Task, own: Q): boolean {
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
    for (const queue of [this.anywhere, ...this.own]) {
      if (queue.size === 0) continue
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
