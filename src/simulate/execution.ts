import type { Task } from '../core/task.ts'
import type { ModelNode } from './model-node.ts'
import type { Place, Stores } from './stores.ts'

/** What a task does while it runs: it reads, computes and writes, in this order. */
export interface Work {
  /** Milliseconds, on CPUs of speed 1 that it has for itself. */
  readonly compute: number
  /** Bytes of what it uses, in the order of its accesses; null when nothing of it takes time. */
  readonly bytes?: readonly number[] | null
  /** Bytes beside these, at the place where the task would write by itself. */
  readonly read?: number
  readonly write?: number
}

export const workOf = (task: Task): Work => task.payload as Work

/** One task under way, step by step. */
export class Execution {
  readonly #task: Task
  readonly #node: ModelNode
  readonly #stores: Stores
  readonly #to: Place | null
  readonly #done: (now: number) => void
  /** Steps: what is read, one by one; reading aside; computing; what is written, one by one; writing aside. */
  #step = 0

  constructor(
    task: Task,
    node: ModelNode,
    stores: Stores,
    done: (now: number) => void,
    to: Place | null = null,
  ) {
    this.#task = task
    this.#node = node
    this.#stores = stores
    this.#done = done
    this.#to = to
  }

  readonly next = (now = 0): void => {
    const task = this.#task
    // It was stopped meanwhile: what is under way ends, and nothing follows.
    if (task.state !== 'running') return
    const { compute, bytes, read = 0, write = 0 } = task.payload as Work
    const count = bytes ? task.accesses.length : 0
    for (;;) {
      const at = this.#step++
      if (at < count) {
        const version = task.accesses[at]?.read
        const size = bytes?.[at] ?? 0
        if (version && size > 0) return this.#stores.read(version.id, size, this.#node, this.next)
      } else if (at === count) {
        if (read > 0) return this.#stores.read(null, read, this.#node, this.next)
      } else if (at === count + 1) {
        const { cpus } = task.implementation.demand ?? task.demand
        // Also for no time at all: a task ends in a step of its own, after whoever started it.
        return this.#node.compute(compute, cpus, this.next)
      } else if (at < 2 * count + 2) {
        const version = task.accesses[at - count - 2]?.write
        const size = bytes?.[at - count - 2] ?? 0
        if (version && size > 0) return this.#stores.write(version.id, size, this.#node, this.#to, this.next)
      } else if (at === 2 * count + 2) {
        if (write > 0) return this.#stores.write(null, write, this.#node, this.#to, this.next)
      } else return this.#done(now)
    }
  }
}
