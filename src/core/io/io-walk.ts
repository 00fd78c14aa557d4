import { Heap } from '../../general/heap.ts'
import type { Task } from '../tasks/task.ts'
import type { Device } from './device.ts'
import type { IoClass, IoLine, IoQueue } from './io-queue.ts'
import type { Opening } from './storage.ts'
import type { TaskIo } from './task-io.ts'

interface Candidate {
  task: Task
  line: IoLine
  /** Bytes per second that it asks for, or has been found to need. */
  bandwidth: number
}

/** What a walk asks about devices. */
export interface Surroundings {
  bandwidthOf(task: Task): number
  /** Where tasks like this one could start, as far as bandwidth and room go. */
  openings(task: Task): Opening[]
  /** Whether what holds the task back is nothing of its own: not its place in the program's order. */
  isTypical(task: Task): boolean
}

/**
 * Goes through the ready tasks in the order of a policy, in one round. Those are left out that cannot start as
 * things are: in a round things only get taken, so a task that does not fit now will not fit later in it.
 */
export class IoWalk {
  readonly #heads: Heap<Candidate>
  readonly #around: Surroundings
  /** Per line, once one of it could not start: what is left for the others. */
  readonly #openings = new Map<IoLine, Opening[]>()

  constructor(queue: IoQueue, around: Surroundings, isBefore: (a: Candidate, b: Candidate) => boolean) {
    this.#heads = new Heap(isBefore)
    this.#around = around
    for (const line of queue.filled) {
      line.blocked.clear()
      this.#push(line, line.tree.first(null, null))
    }
  }

  next(): Candidate | undefined {
    return this.#heads.pop()
  }

  #push(line: IoLine, one: IoClass | null): void {
    const task = one?.first
    if (task) this.#heads.push({ task, line, bandwidth: this.#around.bandwidthOf(task) })
  }

  /** The task has started, or has been set aside: the next of its line is to be tried. */
  goOn({ task, line }: Candidate): void {
    this.#push(line, line.tree.first(task, this.#openings.get(line) ?? null))
  }

  /** The task cannot start now, and for the rest of the round none of its line may use the devices to avoid. */
  refused({ task, line }: Candidate, avoid?: ReadonlySet<Device>): void {
    // Where no other task is in the line, what is left need not be known.
    if (line.tree.isSingle) return
    if (this.#around.isTypical(task)) this.#openings.set(line, this.#openingsOf(task, line, avoid))
    this.#push(line, line.tree.first(task, this.#openings.get(line) ?? null))
  }

  /** Where it would have fitted, something else is against it, and that holds for its whole line. */
  #openingsOf(task: Task, { blocked }: IoLine, avoid?: ReadonlySet<Device>): Opening[] {
    const { bandwidth, size } = (task.io as TaskIo).queuedIn as IoClass
    const left: Opening[] = []
    for (const one of this.#around.openings(task)) {
      if (blocked.has(one.id) || (one.device && avoid?.has(one.device))) continue
      if (bandwidth <= one.bandwidth && size <= one.room) blocked.add(one.id)
      else if (!left.some(other => other.bandwidth >= one.bandwidth && other.room >= one.room)) left.push(one)
    }
    return left
  }
}
