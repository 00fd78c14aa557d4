import { OrderedQueue } from '../../general/ordered-queue.ts'
import type { Task } from '../tasks/task.ts'

/** A task that keeps being overtaken because it needs more than is free is overtaken this often at most. */
const MOST_BYPASSES = 16
/** While nodes are kept for one, this many of each class are asked whether they end before it starts. */
const MOST_PASSED = 16

/** Whether one is to run before the other, if both can. */
export const before = (a: Task, b: Task): boolean => {
  if (a.priority !== b.priority) return a.priority > b.priority
  if (a.score !== b.score) return a.score > b.score
  return a.turn < b.turn
}

export const starved = (task: Task): boolean => task.bypassed >= MOST_BYPASSES

const heldClasses = new WeakMap<object, object>()

/**
 * Tasks of one class fit if one of them does. Those that a bound of temporary data may hold back are a class of their
 * own: behind them must not wait who makes what tasks before them need.
 */
export function classOf({ kind, demand, io }: Task): object {
  const key = kind.implementations.length > 1 ? kind : demand.alike
  if (!io?.isTemporary) return key
  let held = heldClasses.get(key)
  if (!held) heldClasses.set(key, (held = {}))
  return held
}

/** What the queue asks about nodes. */
export interface Placer {
  /** Finds the task a place; false if there is none, or if the task is parked. */
  place(task: Task): boolean
  /** Keeps all others from the nodes where the task could run; true if that is every node. */
  hold(task: Task): boolean
  /** Whether the started task took something that the other waits for. */
  inTheWay(started: Task, other: Task): boolean
}

/**
 * Ready tasks, one queue per class of demand: when the best task of a class does not fit, none of its class
 * is tried, and the cost of a decision depends on the number of classes, not of tasks.
 */
export class ReadyQueue {
  readonly #classes = new Map<object, ReadyClass>()
  /** The class that came last: the only one, in most programs. */
  #last: ReadyClass | null = null
  /** Tasks that are ready and in here. */
  size = 0

  push(task: Task): void {
    const key = classOf(task)
    let entry = this.#classes.get(key)
    if (!entry)
      this.#classes.set(
        key,
        (entry = { queueable: new OrderedQueue(before), others: new OrderedQueue(before) }),
      )
    this.#last = entry
    const queue = task.queueable ? entry.queueable : entry.others
    queue.push(task)
    this.size++
  }

  /** A task that was cancelled or taken by other means stays in its queue until it comes to the top. */
  forget(_task: Task): void {
    this.size--
  }

  /** Takes the task out at once, because its place in the order is about to change. */
  withdraw(task: Task): void {
    const entry = this.#classes.get(classOf(task))
    const queue = task.queueable ? entry?.queueable : entry?.others
    queue?.delete(task)
    this.size--
  }

  /**
   * Takes the best task that `place` accepts. Tasks of lower rank may pass one that does not fit, but only
   * so often: then nothing starts where it could run until it does, so that large tasks are not starved by
   * small ones.
   */
  take({ place, hold, inTheWay }: Placer): Task | null {
    while (this.size > 0) {
      const only = this.#only()
      if (only) {
        // Most programs have one kind of demand; nothing is made for them but the decision.
        const task = headOf(only)
        const isPlaced = task !== undefined && place(task)
        if (task && (isPlaced || task.state === 'parked')) {
          only.pop()
          this.size--
        }
        if (isPlaced) return task
        if (task?.state === 'parked') continue
        if (task && starved(task)) hold(task)
        return null
      }
      const heads = this.heads()
      let parked = false
      let isKept = false
      for (let i = 0; i < heads.length; i++) {
        const { task } = heads[i] as Head
        if (place(task)) {
          this.remove(heads[i] as Head)
          for (let j = 0; j < i; j++) {
            const passed = (heads[j] as Head).task
            if (inTheWay(task, passed)) passed.bypassed++
          }
          return task
        }
        if (task.state === 'parked') {
          this.remove(heads[i] as Head)
          parked = true
          break
        }
        if (!starved(task)) continue
        if (hold(task)) return null
        isKept = true
      }
      if (!parked) return isKept ? this.#shorter(heads, place) : null
    }
    return null
  }

  /** Nodes are kept for a task: behind the best of a class, which would not end in time, may be one that does. */
  #shorter(heads: readonly Head[], place: (task: Task) => boolean): Task | null {
    for (const { task: best, queue } of heads) {
      if (!queue || starved(best)) continue
      const passed: Task[] = []
      let found: Task | null = null
      while (!found && passed.length < MOST_PASSED) {
        const task = headOf(queue)
        if (!task) break
        queue.pop()
        if (task !== best && place(task)) found = task
        else if (task.state === 'parked') this.size--
        else passed.push(task)
      }
      for (const task of passed.reverse()) queue.push(task)
      if (!found) continue
      this.size--
      return found
    }
    return null
  }

  /** The queue with all tasks in it, if there is such a one. */
  #only(): OrderedQueue<Task> | null {
    if (this.#classes.size !== 1 || !this.#last) return null
    const { queueable, others } = this.#last
    if (others.size === 0) return queueable
    return queueable.size === 0 ? others : null
  }

  protected remove({ queue }: Head): void {
    queue?.pop()
    this.size--
  }

  /** The best task of each class, best first. */
  heads(): Head[] {
    const heads: Head[] = []
    for (const [key, { queueable, others }] of this.#classes) {
      const found = addHead(heads, queueable)
      if (!addHead(heads, others) && !found && this.#classes.size > 64) this.#classes.delete(key)
    }
    if (heads.length > 1) heads.sort((a, b) => (before(a.task, b.task) ? -1 : 1))
    return heads
  }
}

interface ReadyClass {
  /** Tasks that may queue behind others on a lane, and those that may not: the former fit more often. */
  queueable: OrderedQueue<Task>
  others: OrderedQueue<Task>
}

export interface Head {
  task: Task
  queue: OrderedQueue<Task> | null
}

function addHead(heads: Head[], queue: OrderedQueue<Task>): boolean {
  const task = headOf(queue)
  if (task) heads.push({ task, queue })
  return task !== undefined
}

/** The best task that is still ready. */
function headOf(queue: OrderedQueue<Task>): Task | undefined {
  let task = queue.peek()
  while (task && task.state !== 'ready') {
    queue.pop()
    task = queue.peek()
  }
  return task
}
