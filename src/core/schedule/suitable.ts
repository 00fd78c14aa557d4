import type { Demand } from '../tasks/demand.ts'
import { refuse } from '../tasks/submission.ts'
import type { Kind, TaskSpec } from '../tasks/task.ts'
import { suits } from './machine.ts'
import type { Node } from './machine.ts'

/** Refuses tasks that no node could ever run. */
export class Suitable {
  /** Further nodes may join. */
  mayGrow: boolean
  readonly #nodes: readonly Node[]
  /** What was found to suit a node last: tasks come in runs of the same kind. */
  #kind: Kind | null = null
  #demand: Demand | null = null

  constructor(nodes: readonly Node[], mayGrow: boolean) {
    this.#nodes = nodes
    this.mayGrow = mayGrow
  }

  check(spec: TaskSpec): void {
    if (spec.demand !== this.#demand || spec.kind !== this.#kind) this.#look(spec)
  }

  /** The nodes have changed. */
  forget(): void {
    this.#kind = this.#demand = null
  }

  #look(spec: TaskSpec): void {
    if (!this.#nodes.some(node => suits(node, spec)) && !this.#mayYetSuit(spec)) refuse(spec, this.#nodes)
    this.#kind = spec.kind
    this.#demand = spec.demand
  }

  /** Nodes that join are taken to be like those that did. */
  #mayYetSuit({ kind, demand }: TaskSpec): boolean {
    if (!this.mayGrow) return false
    const demands = kind.implementations.map(({ demand: own }) => own ?? demand)
    return this.#nodes.length === 0 || demands.some(one => this.#nodes.some(node => node.isLargeEnough(one)))
  }
}
