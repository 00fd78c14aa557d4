import type { FreeNodes } from './free-nodes.ts'
import type { Node } from './machine.ts'
import type { Implementation, Task } from '../tasks/task.ts'

/** Where a task has its CPUs: `count` of them on the first node. */
export interface Spot {
  readonly implementation: Implementation
  readonly first: Node
  readonly count: number
  readonly others: readonly (readonly [Node, number])[]
}

/**
 * The nodes on which a task can have all its CPUs now: they are filled one by one. `lasts`: whether a node is there for long
 * enough.
 */
export function findSpread(
  task: Task,
  nodes: readonly Node[],
  lasts: (implementation: Implementation, node: Node) => boolean,
): Spot | null {
  for (const implementation of task.kind.implementations) {
    const demand = implementation.demand ?? task.demand
    // What is more than CPUs has to be on one node.
    if (demand.memory > 0 || demand.gpus > 0) continue
    const found: [Node, number][] = []
    let left = demand.cpus
    for (const node of nodes) {
      const count = lasts(implementation, node) ? node.roomFor(demand, left) : 0
      if (count > 0) found.push([node, count])
      left -= count
      if (left === 0) break
    }
    const [one, ...others] = found
    if (left === 0 && one) return { implementation, first: one[0], count: one[1], others }
  }
  return null
}

/** Tasks on several nodes, with those that are not their own. */
export class SpreadTasks {
  readonly #nodes = new Map<Task, readonly Node[]>()

  lend(task: Task, { others }: Spot, free: FreeNodes): void {
    for (const [node, count] of others) {
      node.lend(task, count)
      free.update(node)
    }
    this.#nodes.set(
      task,
      others.map(([node]) => node),
    )
  }

  takeBack(task: Task, free: FreeNodes): void {
    if (this.#nodes.size === 0) return
    for (const node of this.#nodes.get(task) ?? []) {
      node.takeBack(task)
      free.update(node)
    }
    this.#nodes.delete(task)
  }
}
