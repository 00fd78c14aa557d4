import type { Node } from './machine.ts'
import type { Demand } from '../tasks/demand.ts'

/** The nodes on which a task can have all its CPUs now, with how many on each: nodes are filled one by one. */
export function spreadOver(nodes: readonly Node[], demand: Demand): [Node, number][] | null {
  if (demand.memory > 0 || demand.gpus > 0) return null
  const found: [Node, number][] = []
  let left = demand.cpus
  for (const node of nodes) {
    const count = node.roomFor(demand, left)
    if (count === 0) continue
    found.push([node, count])
    left -= count
    if (left === 0) return found
  }
  return null
}
