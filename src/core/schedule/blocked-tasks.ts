import type { IoCore } from '../io/io-core.ts'
import type { Task } from '../tasks/task.ts'
import type { FreeNodes } from './free-nodes.ts'
import type { Lane, Node } from './machine.ts'

/** Blocked tasks keep their lane, because their thread is behind it, but no CPU. They go on when the lane is idle. */
export class BlockedTasks {
  readonly #nodes: readonly Node[]
  readonly #free: FreeNodes
  readonly #io: IoCore
  /** Nodes where some could go on. */
  readonly #claimed = new Set<Node>()

  constructor(nodes: readonly Node[], free: FreeNodes, io: IoCore) {
    this.#nodes = nodes
    this.#free = free
    this.#io = io
  }

  /** What the task waited for is there: it wants its lane again. */
  claim(task: Task): void {
    const node = this.#nodes[task.node] as Node
    const { resuming } = node.lanes[task.lane] as Lane
    for (const one of resuming) if (one === task) return
    node.claims++
    this.#claimed.add(node)
    resuming.push(task)
  }

  forget(task: Task): void {
    const node = this.#nodes[task.node] as Node
    if (node.lanes[task.lane]?.resuming.remove(task)) node.claims--
    node.gpus.giveBack(task)
  }

  /** One that is being stopped holds nothing: without a node, nothing is released for it. */
  drop(task: Task): void {
    this.forget(task)
    task.node = -1
  }

  /** Lets those go on whose lane is idle. */
  decide(resume: (task: Task) => void): void {
    if (this.#claimed.size === 0) return
    const nodes = [...this.#claimed].sort((a, b) => a.index - b.index)
    for (const node of nodes) {
      if (node.claims > 0) this.#resumeOn(node, resume)
      if (node.claims === 0) this.#claimed.delete(node)
    }
  }

  #resumeOn(node: Node, resume: (task: Task) => void): void {
    for (const lane of node.lanes) {
      const task = lane.resuming.peek()
      if (!task || !node.canResume(task, task.attemptDemand)) continue
      if (task.io && !this.#io.goOn(task)) continue
      lane.resuming.shift()
      node.claims--
      node.occupy(task, task.attemptDemand, lane)
      this.#free.update(node)
      resume(task)
    }
  }
}
