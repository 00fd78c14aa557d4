import { OrderedQueue } from '../../general/ordered-queue.ts'
import { before } from '../ready-queue.ts'
import type { Demand, Kind, Task } from '../task.ts'
import type { TaskIo } from './task-io.ts'

/** Ready tasks of one kind that ask for the same, of the same devices: if one does not fit, none does. */
export class IoClass {
  readonly kind: Kind
  readonly demand: Demand
  readonly queue = new OrderedQueue<Task>(before)
  /** Ready tasks; entries of tasks that were cancelled may still lie in the queue. */
  size = 0

  constructor(kind: Kind, demand: Demand) {
    this.kind = kind
    this.demand = demand
  }

  /** The task that is to start first. */
  head(): Task | undefined {
    let task = this.queue.peek()
    while (task && (task.state !== 'ready' || task.io?.queuedIn !== this)) {
      this.queue.pop()
      task = this.queue.peek()
    }
    return task
  }
}

/** Ready I/O tasks by class: the cost of a decision depends on the number of classes, not of tasks. */
export class IoQueue {
  readonly #classes = new Map<Kind, Map<number, IoClass>>()
  /** The classes that have ready tasks. */
  readonly filled = new Set<IoClass>()
  readonly #devices: number
  #size = 0

  constructor(devices: number) {
    this.#devices = devices + 1
  }

  get size(): number {
    return this.#size
  }

  push(task: Task, io: TaskIo): void {
    const { kind, demand } = task
    let ofKind = this.#classes.get(kind)
    if (!ofKind) this.#classes.set(kind, (ofKind = new Map()))
    const pinned = (io.pinned?.index ?? -1) + 1
    const source = (io.source?.index ?? -1) + 1
    const key = (demand.id * this.#devices + pinned) * this.#devices + source
    let one = ofKind.get(key)
    if (!one) ofKind.set(key, (one = new IoClass(kind, demand)))
    io.queuedIn = one
    one.queue.push(task)
    one.size++
    this.#size++
    this.filled.add(one)
  }

  /** The task starts, or will not start after all. */
  remove(task: Task): void {
    const one = task.io?.queuedIn
    if (!task.io || !one) return
    task.io.queuedIn = null
    this.#size--
    if (--one.size > 0) return
    this.filled.delete(one)
    one.head()
  }

  /** Ready tasks of a kind. */
  waiting(kind: Kind): number {
    let count = 0
    for (const { size } of this.#classes.get(kind)?.values() ?? []) count += size
    return count
  }
}
