import type { Version } from '../data/datum.ts'
import type { Task } from '../tasks/task.ts'

/** Bytes from which on I/O goes to where they are. */
const WORTH_GOING = 64 * 1024

/**
 * Which node has what: where its disk is, where it was made, or else first read. There it is on a disk or in the page
 * cache. A task is close to the node that has most of what it reads.
 */
export class Locality {
  readonly #homes = new WeakMap<Version, number>()
  readonly #sizeOf: (version: Version) => number

  constructor(sizeOf: (version: Version) => number) {
    this.#sizeOf = sizeOf
  }

  /** A task has ended well. */
  used({ node, accesses }: Task): void {
    for (const { read, write } of accesses) {
      if (write) this.#homes.set(write, node)
      if (read && !this.#homes.has(read)) this.#homes.set(read, node)
    }
  }

  /** Nodes that have some of what the task reads, the one with most bytes of it first. */
  candidates(task: Task): number[] {
    return [...this.#amounts(task)].sort(([a, most], [b, more]) => more - most || a - b).map(([node]) => node)
  }

  /** Bytes of what the task reads: on each node that has some, and in all. */
  bytes(task: Task): { on: (node: number) => number; all: number } {
    const amounts = this.#amounts(task, 0)
    let all = 0
    for (const { read } of task.accesses) if (read) all += this.#sizeOf(read)
    return { on: node => amounts.get(node) ?? 0, all }
  }

  /**
   * The node that a task with I/O is best on, where it holds most of what the task reads. A file on a disk of its own counts
   * in any case. A small value does not: where many tasks read it, it would bring all of them to one node.
   */
  homeOf({ accesses }: Task): number | null {
    const amounts = new Map<number, number>()
    let home: number | null = null
    for (const { read } of accesses) {
      if (!read) continue
      const { place } = read
      const node = place ? place.device.node : (this.#homes.get(read) ?? null)
      const bytes = Math.max(this.#sizeOf(read), place?.measured ?? 0)
      if (node === null || (!place && bytes < WORTH_GOING)) continue
      const sum = (amounts.get(node) ?? 0) + bytes + 1
      amounts.set(node, sum)
      if (home === null || sum > (amounts.get(home) as number)) home = node
    }
    return home
  }

  /** `atLeast`: inputs that are small, or of unknown size, are better near than far. */
  #amounts({ accesses }: Task, atLeast = 1): Map<number, number> {
    const amounts = new Map<number, number>()
    for (const { read } of accesses) {
      const home = read && (read.place?.device.node ?? this.#homes.get(read))
      if (home === null || home === undefined) continue
      amounts.set(home, (amounts.get(home) ?? 0) + this.#sizeOf(read as Version) + atLeast)
    }
    return amounts
  }
}
