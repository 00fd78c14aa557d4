import type { Policy } from 'millrace'

/** How many blocks each node has been given, and where the last one went. */
const given = new Map<number, number>()
const last = { task: -1, node: -1 }

/**
 * Tasks that initialise blocks go to the nodes in turn, and nowhere else. All others go to the node that has most of what
 * they read.
 */
export const roundRobin: Policy = {
  name: 'round-robin',
  score: () => 0,
  place(task, { node, bytes, all }) {
    if (task.kind.name !== 'initialise') return bytes
    if (task.id !== last.task) {
      const count = (one: number): number => given.get(one) ?? 0
      const [first] = all.map(place => place.node).sort((a, b) => count(a) - count(b) || a - b)
      Object.assign(last, { task: task.id, node: first })
      if (first !== undefined) given.set(first, count(first) + 1)
    }
    return node === last.node ? Infinity : 0
  },
}
