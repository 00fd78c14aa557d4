import type { Cancellations } from '../tasks/cancellations.ts'
import type { Endings } from '../tasks/endings.ts'
import { members } from '../tasks/group.ts'
import type { Group } from '../tasks/group.ts'
import type { Task } from '../tasks/task.ts'
import type { CancelWhy } from '../why.ts'
import { homeless } from './homeless.ts'
import { Node, suits } from './machine.ts'
import type { NodeDescription } from './machine.ts'
import type { EngineParts } from './readiness.ts'
import type { Suitable } from './suitable.ts'

/** Which nodes take part in the run, and what becomes of tasks that none of them can run. */
export class Membership {
  readonly #nodes: Node[]
  readonly #root: Group
  readonly #parts: EngineParts
  readonly #suitable: Suitable
  readonly #cancellations: Cancellations
  readonly #endings: Endings

  constructor(
    nodes: Node[],
    root: Group,
    parts: EngineParts,
    suitable: Suitable,
    cancellations: Cancellations,
    endings: Endings,
  ) {
    this.#nodes = nodes
    this.#root = root
    this.#parts = parts
    this.#suitable = suitable
    this.#cancellations = cancellations
    this.#endings = endings
  }

  /** A node takes part from now on. */
  joined(description: NodeDescription): Node {
    const node = new Node(this.#nodes.length, description, this.#nodes)
    this.#nodes.push(node)
    this.#parts.io.storage.joined(node, description)
    this.#parts.placement.joined(node)
    return node
  }

  /** Whether anything more may start on the node, and when it ends by itself; Infinity if it does not. */
  changed(index: number, isPaused: boolean, until: number): void {
    const node = this.#nodes[index] as Node
    Object.assign(node, { isPaused, until })
    this.#parts.placement.changed(node)
  }

  /** The node is gone for good. Its attempts come back one by one, by `returned`; what no other node can run is cancelled. */
  lost(index: number, now: number): void {
    this.#suitable.forget()
    const node = this.#nodes[index] as Node
    this.#parts.placement.lose(node)
    this.#cancelHomeless({ kind: 'node-lost', node: node.name }, now)
  }

  /** A task that comes when nodes are lost already is cancelled if none of the others can run it. */
  cancelIfHomeless(task: Task, now: number): void {
    if (this.#suitable.mayGrow || this.#nodes.some(node => suits(node, task))) return
    const node = this.#nodes.findLast(({ isLost }) => isLost)?.name ?? ''
    this.#cancellations.add(task, null, { kind: 'node-lost', node })
    this.#endings.cancelAll(now)
  }

  /** No node will join any more: what none can run is cancelled. */
  close(now: number): void {
    this.#suitable.mayGrow = false
    this.#cancelHomeless({ kind: 'closed', by: 'nodes-lost' }, now)
  }

  #cancelHomeless(why: CancelWhy, now: number): void {
    if (this.#suitable.mayGrow) return
    const isLast = this.#nodes.every(one => one.isLost)
    const reason = isLast ? this.#cancellations.close('nodes-lost') : why
    for (const task of homeless(members(this.#root), this.#nodes)) this.#cancellations.add(task, null, reason)
    this.#endings.cancelAll(now)
  }
}
