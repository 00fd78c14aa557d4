import type { Policy } from 'millrace'

/** The node that the last task was given, and how many each has been given. */
const given = new Map<number, number>()
let asked = { task: -1, node: -1, score: -Infinity }

/**
 * Tasks that initialise blocks go to the nodes in turn, whatever the blocks are for. All others go to the node that has most of
 * what they read.
 */
export const roundRobin: Policy = {
  name: 'round-robin',
  score: () => 0,
  place(task, { node, bytes }) {
    if (task.kind.name !== 'initialise') return bytes
    if (task.id !== asked.task) {
      if (asked.node >= 0) given.set(asked.node, (given.get(asked.node) ?? 0) + 1)
      asked = { task: task.id, node: -1, score: -Infinity }
    }
    // The node with the fewest, of equal ones the first.
    const score = -(given.get(node) ?? 0) - node / 1e6
    if (score > asked.score) asked = { task: task.id, node, score }
    return score
  },
}
