import { isShare } from './machine.ts'
import type { Node } from './machine.ts'
import type { Demand } from '../tasks/demand.ts'

/**
 * Finds the first node with room without looking at all of them: over the nodes lies a tree, each of whose
 * places knows the most free lanes (twice as many, and one more if some are shared and have room) and the most free memory of any node below it. Looking for a node costs
 * the logarithm of their number; so does telling that one has changed.
 */
export class FreeNodes {
  readonly #nodes: readonly Node[]
  #leaves = 0
  #lanes = new Int32Array(0)
  #memory = new Float64Array(0)

  constructor(nodes: readonly Node[]) {
    this.#nodes = nodes
    this.#grow()
  }

  #grow(): void {
    let leaves = 1
    while (leaves < this.#nodes.length) leaves *= 2
    this.#leaves = leaves
    this.#lanes = new Int32Array(2 * leaves).fill(-1)
    this.#memory = new Float64Array(2 * leaves).fill(-1)
    for (const node of this.#nodes) this.update(node)
  }

  /** To be called whenever what is free of a node has changed. */
  update(node: Node): void {
    const { index, freeLanes, freeMemory, isLost, isPaused } = node
    // A node that has joined.
    if (index >= this.#leaves) return this.#grow()
    const lanes = this.#lanes
    const memory = this.#memory
    let at = this.#leaves + index
    lanes[at] = isLost || isPaused ? -1 : 2 * freeLanes + (node.hasSharedRoom ? 1 : 0)
    memory[at] = freeMemory
    for (at >>= 1; at >= 1; at >>= 1) {
      const most = Math.max(lanes[2 * at] as number, lanes[2 * at + 1] as number)
      const mostMemory = Math.max(memory[2 * at] as number, memory[2 * at + 1] as number)
      if (lanes[at] === most && memory[at] === mostMemory) return
      lanes[at] = most
      memory[at] = mostMemory
    }
  }

  /** The first node from `from` on with this many lanes and this much memory free; it may lack something else. */
  next(demand: Demand, from = 0): Node | null {
    const found = this.#find(1, 0, this.#leaves, from, demand)
    return found < 0 ? null : (this.#nodes[found] ?? null)
  }

  /** Among the `size` leaves from `low` on that are below this place. */
  #find(place: number, low: number, size: number, from: number, demand: Demand): number {
    if (low + size <= from) return -1
    // Lanes and memory may be free on different nodes: then nothing is found further down.
    if ((this.#lanes[place] as number) < lanesFor(demand)) return -1
    if ((this.#memory[place] as number) < demand.memory) return -1
    if (size === 1) return low
    const half = size / 2
    const left = this.#find(2 * place, low, half, from, demand)
    return left >= 0 ? left : this.#find(2 * place + 1, low + half, half, from, demand)
  }
}

const lanesFor = ({ cpus }: Demand): number => (isShare(cpus) ? 1 : 2 * cpus)
