import type { Version } from './data.ts'
import type { Task } from './task.ts'

/**
 * Which node has what: where it was made, or else first read. There it is on a disk or in the page cache. A task is
 * close to the node that has most of what it reads.
 */
export class Locality {
  readonly #homes = new WeakMap<Version, number>()

  /** A task has ended well. */
  used({ node, accesses }: Task): void {
    for (const { read, write } of accesses) {
      if (write) this.#homes.set(write, node)
      if (read && !this.#homes.has(read)) this.#homes.set(read, node)
    }
  }

  /** Nodes that have some of what the task reads, the one with most of it first. */
  candidates({ accesses }: Task): number[] {
    const counts = new Map<number, number>()
    for (const { read } of accesses) {
      const home = read && this.#homes.get(read)
      if (home !== null && home !== undefined) counts.set(home, (counts.get(home) ?? 0) + 1)
    }
    return [...counts].sort(([a, most], [b, more]) => more - most || a - b).map(([node]) => node)
  }
}
