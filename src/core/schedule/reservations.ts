import type { Lane, Node } from './machine.ts'
import type { Implementation, Task } from '../tasks/task.ts'

/**
 * Nodes that are kept for a task which was overtaken too often. Until it can be expected to start, tasks that are known to end before may
 * use the CPUs there. The moment is never put off: a task that takes longer than expected delays the one that waits once, not again
 * and again.
 */
export class Reservations {
  /** Of nodes that are kept now, until when others may run there. */
  readonly #until = new Map<Node, number>()
  readonly #promised = new WeakMap<Task, Map<Node, number>>()

  get size(): number {
    return this.#until.size
  }

  has(node: Node): boolean {
    return this.#until.has(node)
  }

  /** These nodes are kept for the task. */
  keep(nodes: readonly Node[], task: Task, now: number): void {
    let promised = this.#promised.get(task)
    if (!promised) this.#promised.set(task, (promised = new Map()))
    // One over several nodes may find some of its CPUs on each.
    const together = task.demand.spread ? startOn(nodes, task, now) : null
    for (const node of nodes) {
      const until = Math.min(together ?? startOn([node], task, now), promised.get(node) ?? Infinity)
      promised.set(node, until)
      this.#until.set(node, Math.min(until, this.#until.get(node) ?? Infinity))
    }
  }

  /** Nothing at all may start there. */
  isClosed(node: Node, now: number): boolean {
    const until = this.#until.get(node)
    return until !== undefined && until <= now
  }

  admits(node: Node, one: Implementation, now: number): boolean {
    const until = this.#until.get(node)
    return until === undefined || (one.ended > 0 && now + one.peak <= until)
  }

  clear(): void {
    this.#until.clear()
  }
}

/** When the task can start at the earliest. What is not known of those that run there is taken for nothing. */
function startOn(nodes: readonly Node[], { demand }: Task, now: number): number {
  const lefts = nodes.flatMap(({ lanes }) => lanes.map(lane => leftOf(lane, now))).sort((a, b) => a - b)
  return now + (lefts[Math.max(1, Math.ceil(demand.cpus)) - 1] ?? 0)
}

function leftOf(lane: Lane, now: number): number {
  const task = lane.lentTo ?? lane.queue.peek()
  if (!task || task.state !== 'running' || lane.shared > 0) return 0
  const { ended, estimate } = task.implementation
  return ended === 0 ? 0 : Math.max(0, estimate - (now - task.begunAt))
}
