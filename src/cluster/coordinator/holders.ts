import type { Elsewhere } from '../../node/threads/elsewhere.ts'
import { DIRECT } from '../transfer/outgoing.ts'
import type { NodeLink } from './node-link.ts'
import { NodeLost } from './remote-processes.ts'

/** A node that has a buffer, or is about to, and by which number it knows it. */
interface Holding {
  readonly link: NodeLink
  readonly number: number
  /** All of it is there. */
  isWhole: boolean
}

/**
 * Which nodes have a large buffer, so that others get it from there. Each new reader gets it from the one that serves fewest:
 * several readers form a chain, in which each passes on what has arrived. What a task made is on its node alone until a task
 * wants it here.
 */
export class Holders implements Elsewhere {
  readonly #of = new WeakMap<ArrayBufferLike, Holding[]>()
  readonly #serving = new Map<NodeLink, number>()
  /** Pairs that could not reach each other. */
  readonly #apart = new WeakMap<NodeLink, WeakSet<NodeLink>>()
  /** What is not here, and how it comes if it does. */
  readonly #away = new WeakMap<ArrayBufferLike, { coming: Promise<void> | null }>()

  note(buffer: ArrayBufferLike, holding: Holding): void {
    if (buffer.byteLength < DIRECT || holding.link.peers.length === 0) return
    const known = this.#of.get(buffer)
    if (known) known.push(holding)
    else this.#of.set(buffer, [holding])
  }

  /** A node has got all of it from another one. */
  arrived(buffer: ArrayBufferLike, at: NodeLink): void {
    for (const one of this.#of.get(buffer) ?? []) if (one.link === at) one.isWhole = true
  }

  /** Who is to send the buffer to a node; null for the coordinator itself. `ended` is to be called when that is over. */
  choose(buffer: ArrayBufferLike, to: NodeLink): Holding | null {
    if (to.peers.length === 0) return null
    let best: Holding | null = null
    for (const one of this.#of.get(buffer) ?? []) {
      if (one.link.isGone || one.link === to || this.#apart.get(to)?.has(one.link)) continue
      if (!best || this.#count(one.link) < this.#count(best.link)) best = one
    }
    if (best) this.#serving.set(best.link, this.#count(best.link) + 1)
    return best
  }

  ended({ link }: Holding, to: NodeLink, isHere: boolean): void {
    this.#serving.set(link, Math.max(0, this.#count(link) - 1))
    if (isHere || link.isGone) return
    const apart = this.#apart.get(to) ?? new WeakSet()
    apart.add(link)
    this.#apart.set(to, apart)
  }

  #count(link: NodeLink): number {
    return this.#serving.get(link) ?? 0
  }

  // --- what is not here ---

  /** Its content is where it was made. */
  stays(buffer: ArrayBufferLike): void {
    this.#away.set(buffer, { coming: null })
  }

  isAway(buffer: ArrayBufferLike): boolean {
    return this.#away.has(buffer)
  }

  isLost(buffer: ArrayBufferLike): boolean {
    return this.#away.has(buffer) && !this.#source(buffer)
  }

  isOnlyOn(buffer: ArrayBufferLike, node: number): boolean {
    if (!this.#away.has(buffer)) return false
    return (this.#of.get(buffer) ?? []).every(
      ({ link, isWhole }) => link.node === node || link.isGone || !isWhole,
    )
  }

  bring(buffer: ArrayBufferLike): Promise<void> | null {
    const away = this.#away.get(buffer)
    return away ? (away.coming ??= this.#bring(buffer)) : null
  }

  async #bring(buffer: ArrayBufferLike): Promise<void> {
    for (let from = this.#source(buffer); from; from = this.#source(buffer)) {
      if (!(await from.link.memory.bring(from.number, buffer))) continue
      this.#away.delete(buffer)
      return
    }
    throw new NodeLost()
  }

  #source(buffer: ArrayBufferLike): Holding | undefined {
    return this.#of.get(buffer)?.find(({ link, isWhole }) => isWhole && !link.isGone)
  }
}
