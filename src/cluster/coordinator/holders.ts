import type { NodeLink } from './node-link.ts'

/** A node that has a buffer, or is about to, and by which number it knows it. */
interface Holding {
  readonly link: NodeLink
  readonly number: number
}

/** Smaller buffers are sent by the coordinator, which has them; bytes. */
const DIRECT = 256 * 1024

/**
 * Which nodes have a large buffer, so that others get it from there. Each new reader gets it from the one that serves fewest:
 * several readers form a chain, in which each passes on what has arrived.
 */
export class Holders {
  readonly #of = new WeakMap<ArrayBufferLike, Holding[]>()
  readonly #serving = new Map<NodeLink, number>()
  /** Pairs that could not reach each other. */
  readonly #apart = new WeakMap<NodeLink, WeakSet<NodeLink>>()

  note(buffer: ArrayBufferLike, link: NodeLink, number: number): void {
    if (buffer.byteLength < DIRECT || link.peers.length === 0) return
    const known = this.#of.get(buffer)
    if (known) known.push({ link, number })
    else this.#of.set(buffer, [{ link, number }])
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
}
