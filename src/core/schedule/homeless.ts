import type { Kind, Task } from '../tasks/task.ts'
import type { Demand } from '../tasks/demand.ts'
import { suits } from './machine.ts'
import type { Node } from './machine.ts'

/** Those among the tasks that no node can run. There may be millions, of few kinds. */
export function* homeless(tasks: Iterable<Task>, nodes: readonly Node[]): Generator<Task> {
  const known = new Map<Kind, Map<Demand, boolean>>()
  for (const task of tasks) {
    const { kind, demand } = task
    let byDemand = known.get(kind)
    if (!byDemand) known.set(kind, (byDemand = new Map()))
    let canRun = byDemand.get(demand)
    if (canRun === undefined) byDemand.set(demand, (canRun = nodes.some(node => suits(node, task))))
    if (!canRun) yield task
  }
}
