/**
 * How many nodes a run should have, decided from what waits and what is there. It is pure: the time comes in, decisions
 * come out.
 */

export interface ScalerLimits {
  readonly min: number
  readonly max: number
  /** A node that has had nothing to do for so long is given back; milliseconds. */
  readonly idle: number
}

export interface ScalerNode {
  readonly id: number
  readonly cpus: number
  /** Nothing runs there. */
  readonly isIdle: boolean
  /** When it ends by itself; Infinity if it does not. */
  readonly until: number
}

export interface ScalerView {
  readonly now: number
  /** Tasks that are ready and have no place. */
  readonly waiting: number
  /** What a task took on average; null while none has ended. */
  readonly meanMs: number | null
  readonly nodes: readonly ScalerNode[]
  /** Nodes that were asked for and are not there yet. */
  readonly coming: number
}

export interface ScalerOrders {
  /** How many more nodes to ask for. */
  readonly ask: number
  /** Nothing more is to start on these; they are given back as soon as nothing runs there. */
  readonly giveBack: readonly number[]
}

/** Between two questions; milliseconds. Sites do not like those who ask more often. */
export const ASK_EVERY = 10_000
/** A node is worth its start if each of its CPUs has at least so much to do; milliseconds. */
const WORTH = 10_000

export class Scaler {
  readonly #limits: ScalerLimits
  #askedAt = -Infinity
  readonly #idleSince = new Map<number, number>()
  readonly #leaving = new Set<number>()

  constructor(limits: ScalerLimits) {
    this.#limits = limits
  }

  decide(view: ScalerView): ScalerOrders {
    const { now, nodes } = view
    const giveBack: number[] = []
    const staying: ScalerNode[] = []
    for (const node of nodes) {
      if (this.#leaving.has(node.id)) continue
      if (!node.isIdle || view.waiting > 0) this.#idleSince.delete(node.id)
      else if (!this.#idleSince.has(node.id)) this.#idleSince.set(node.id, now)
      if (node.until <= now) giveBack.push(node.id)
      else staying.push(node)
    }
    let left = staying.length
    for (const { id } of staying) {
      const since = this.#idleSince.get(id)
      if (left <= this.#limits.min || since === undefined || now - since < this.#limits.idle) continue
      giveBack.push(id)
      left--
    }
    for (const id of giveBack) this.#leaving.add(id)
    return { ask: this.#ask(view, left), giveBack }
  }

  /** The node is gone. */
  left(id: number): void {
    this.#leaving.delete(id)
    this.#idleSince.delete(id)
  }

  #ask({ now, waiting, meanMs, nodes, coming }: ScalerView, usable: number): number {
    const { min, max } = this.#limits
    const cpus = nodes[0]?.cpus ?? 1
    const byCount = Math.ceil(waiting / cpus)
    const byWork = meanMs === null ? 1 : Math.ceil((waiting * meanMs) / (cpus * WORTH))
    // While nothing is known of the tasks, and none is there, one node is enough to find out.
    const useful = waiting === 0 ? 0 : Math.max(usable === 0 ? 1 : 0, Math.min(byCount, byWork))
    const wanted = Math.min(max, Math.max(min, usable + useful))
    // Those that leave count until they are gone: there are never more than `max`.
    const missing = Math.min(wanted - usable, max - nodes.length) - coming
    if (missing <= 0 || now - this.#askedAt < ASK_EVERY) return 0
    this.#askedAt = now
    return missing
  }
}
