import { Deque } from '../../general/deque.ts'
import { OrderedQueue } from '../../general/ordered-queue.ts'
import { before } from '../schedule/ready-queue.ts'
import type { Demand } from '../tasks/demand.ts'
import type { Kind, Task } from '../tasks/task.ts'
import { ClassTree } from './class-tree.ts'
import type { TaskOrder } from './class-tree.ts'
import type { TaskIo } from './task-io.ts'

/** Ready tasks of one kind that ask for the same, of the same devices: if one does not fit, none does. */
export class IoClass {
  readonly line: IoLine
  /** What each asks for; 0 where it is not said, because then it is the same for all of the line. */
  readonly bandwidth: number
  /** That of the first task: those of one class differ a little. */
  size = 0
  readonly queue = new OrderedQueue<Task>(before)
  /** The task that is to start first, as the line's tree knows it. */
  first: Task | null = null
  /** Its place in that tree. */
  place = 0

  constructor(line: IoLine, { storage }: Demand) {
    this.line = line
    this.bandwidth = staticBandwidth(storage?.bandwidth)
  }

  /** Entries of tasks that were cancelled, or started by other means, may still lie in the queue. */
  head(): Task | null {
    let task = this.queue.peek()
    while (task && (task.state !== 'ready' || task.io?.queuedIn !== this)) {
      this.queue.pop()
      task = this.queue.peek()
    }
    return task ?? null
  }
}

/** The bandwidth that a task itself says; 0 where it is found by other means, or not asked for. */
export const staticBandwidth = (bandwidth: unknown): number => (typeof bandwidth === 'number' ? bandwidth : 0)

/** Classes that differ only in bandwidth and size: anything else that holds back one holds back all. */
export class IoLine {
  readonly kind: Kind
  readonly tree: ClassTree
  /** Tasks in all its classes. */
  waiting = 0
  /** Of one round: where no task of the line can start, with any demand. */
  readonly blocked = new Set<number>()

  constructor(kind: Kind, order: TaskOrder) {
    this.kind = kind
    this.tree = new ClassTree(order)
  }
}

interface OfKind {
  readonly classes: Map<number, IoClass>
  readonly lines: Map<string, IoLine>
  waiting: number
}

/** Ready I/O tasks: what a decision costs depends on the number of lines, and hardly on that of classes and tasks. */
export class IoQueue {
  readonly #kinds = new Map<Kind, OfKind>()
  /** The lines that have ready tasks. */
  readonly filled = new Set<IoLine>()
  /** Classes whose first task changed, for reports of why tasks wait. */
  readonly changed = new Set<IoClass>()
  readonly #devices: number
  readonly #order: TaskOrder
  #size = 0
  /** In the order in which they came; those that are not in the queue any more are left out late. */
  readonly #arrivals = new Deque<{ io: TaskIo; task: Task; number: number }>()
  #arrived = 0

  constructor(devices: number, order: TaskOrder) {
    this.#devices = devices + 1
    this.#order = order
  }

  get size(): number {
    return this.#size
  }

  push(task: Task, io: TaskIo): void {
    const one = this.#classOf(task, io)
    io.queuedIn = one
    one.queue.push(task)
    this.#ofKind(task.kind).waiting++
    one.line.waiting++
    this.#size++
    this.#arrivals.push({ io, task, number: this.#arrived++ })
    if (this.#arrivals.size > 2 * this.#size + 1024) this.#tidy()
    this.#place(one)
  }

  #tidy(): void {
    const arrivals = this.#arrivals
    for (let left = arrivals.size; left > 0; left--) {
      const one = arrivals.shift()
      if (one?.io.queuedIn) arrivals.push(one)
    }
  }

  #ofKind(kind: Kind): OfKind {
    let known = this.#kinds.get(kind)
    if (!known) this.#kinds.set(kind, (known = { classes: new Map(), lines: new Map(), waiting: 0 }))
    return known
  }

  #classOf({ kind, demand }: Task, io: TaskIo): IoClass {
    const { classes, lines } = this.#ofKind(kind)
    const pinned = (io.pinned?.index ?? -1) + 1
    const source = (io.source?.index ?? -1) + 1
    const flags = (io.direction === 'read' ? 1 : 0) + (io.isTemporary ? 2 : 0) + (io.needsDevice ? 4 : 0)
    const key = ((demand.id * this.#devices + pinned) * this.#devices + source) * 8 + flags
    let one = classes.get(key)
    if (one) return one
    const { memory, tags, storage } = demand
    const found =
      typeof storage?.bandwidth === 'number' ? 'given' : JSON.stringify(storage?.bandwidth ?? null)
    const lineKey = [pinned, source, flags, found, storage?.size == null, memory, ...tags].join(' ')
    let line = lines.get(lineKey)
    if (!line) lines.set(lineKey, (line = new IoLine(kind, this.#order)))
    classes.set(key, (one = new IoClass(line, demand)))
    return one
  }

  /** Puts the class where its first task belongs. */
  #place(one: IoClass): void {
    const { line, first } = one
    const head = one.head()
    if (head === first) return
    if (first) line.tree.delete(one)
    one.first = head
    if (head) {
      one.size = head.demand.storage?.size ?? 0
      line.tree.add(one)
      this.filled.add(line)
      this.changed.add(one)
    } else {
      this.changed.delete(one)
      if (line.tree.isEmpty) this.filled.delete(line)
    }
  }

  /** The task starts, or will not start after all. */
  remove(task: Task): void {
    const one = task.io?.queuedIn
    if (!task.io || !one) return
    task.io.queuedIn = null
    this.#size--
    this.#ofKind(task.kind).waiting--
    one.line.waiting--
    this.#place(one)
  }

  /** Takes the task out at once, because its place in the order is about to change. */
  withdraw(task: Task): void {
    task.io?.queuedIn?.queue.delete(task)
    this.remove(task)
  }

  /** Ready tasks of a kind. */
  waiting(kind: Kind): number {
    return this.#kinds.get(kind)?.waiting ?? 0
  }

  /** The oldest waiting task, if this many younger ones have left the queue. */
  passed(times: number): Task | null {
    const arrivals = this.#arrivals
    let oldest = arrivals.peek()
    while (oldest && !oldest.io.queuedIn) {
      arrivals.shift()
      oldest = arrivals.peek()
    }
    if (!oldest) return null
    const later = this.#arrived - 1 - oldest.number
    return later - (this.#size - 1) >= times ? oldest.task : null
  }
}
