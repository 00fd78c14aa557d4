import { coarsen } from './coarsen.ts'
import { cutOf, limitsOf, loadsOf } from './graph.ts'
import type { Graph } from './graph.ts'
import { Refinement } from './refine.ts'

/** The coarsest graph has about this many vertices for each part. */
const COARSEST = 16
/** Orders that are tried for the coarsest graph. */
const TRIES = 8

/**
 * Divides a graph into parts so that the bonds between them are few, while each part has its share of every band. Vertices with strong
 * bonds are joined until few are left, those are divided, and on the way back single vertices are moved. Equal graphs are
 * divided equally.
 */
export function partition(graph: Graph, shares: readonly number[]): Int32Array {
  const found = fromCoarse(graph, shares)
  // Vertices often come in an order in which neighbours are near.
  const inOrder = divide(
    graph,
    shares,
    Int32Array.from({ length: graph.size }, (_, i) => i),
  )
  improve(graph, inOrder, shares)
  return cutOf(graph, inOrder) < cutOf(graph, found) ? inOrder : found
}

function fromCoarse(graph: Graph, shares: readonly number[]): Int32Array {
  const levels: { graph: Graph; into: Int32Array | null }[] = [{ graph, into: null }]
  const most = heaviest(graph, shares.length)
  for (let last = graph; last.size > COARSEST * shares.length;) {
    const next = coarsen(last, most)
    if (next.graph.size > 0.95 * last.size) break
    levels.push({ graph: next.graph, into: next.into })
    last = next.graph
  }
  let parts = divideBest((levels.at(-1) as { graph: Graph }).graph, shares)
  for (let i = levels.length - 1; i > 0; i--) {
    const { into } = levels[i] as { into: Int32Array }
    parts = into.map(vertex => parts[vertex] as number)
    new Refinement((levels[i - 1] as { graph: Graph }).graph, parts, shares).run()
  }
  return parts
}

/** Makes the best of a division that is there: evens it out, and saves bonds. */
export function improve(graph: Graph, parts: Int32Array, shares: readonly number[]): void {
  new Refinement(graph, parts, shares).run()
}

/** No vertex gets heavier than a quarter of a part in any band, unless it is so from the beginning. */
function heaviest({ size, bands, weights }: Graph, count: number): Float64Array {
  const totals = new Float64Array(bands)
  for (let i = 0; i < size * bands; i++) totals[i % bands]! += weights[i] as number
  return totals.map(total => Math.max(1, total / (4 * count)))
}

function divideBest(graph: Graph, shares: readonly number[]): Int32Array {
  let best: Int32Array | null = null
  let least = Infinity
  for (let i = 0; i < TRIES && i < Math.max(1, graph.size); i++) {
    const parts = divide(graph, shares, breadthFirst(graph, Math.floor((i * graph.size) / TRIES)))
    new Refinement(graph, parts, shares).run()
    const cost = cutOf(graph, parts) * (1 + excess(graph, parts, shares))
    if (best && cost >= least) continue
    best = parts
    least = cost
  }
  return best ?? new Int32Array(0)
}

/** In this order each part gets its share of every band, one part after the other. */
function divide({ size, bands, weights }: Graph, shares: readonly number[], order: Int32Array): Int32Array {
  const sum = shares.reduce((all, share) => all + share, 0)
  const ends: number[] = []
  for (const share of shares) ends.push((ends.at(-1) ?? 0) + share / sum)
  const totals = new Float64Array(bands)
  for (let i = 0; i < size * bands; i++) totals[i % bands]! += weights[i] as number
  const before = new Float64Array(bands)
  const parts = new Int32Array(size)
  for (const vertex of order) {
    let [main, most] = [0, 0]
    for (let band = 0; band < bands; band++) {
      const share = (weights[vertex * bands + band] as number) / (totals[band] || 1)
      if (share > most) [main, most] = [band, share]
    }
    const middle = (before[main] as number) + (weights[vertex * bands + main] as number) / 2
    const found = ends.findIndex(end => middle <= end * (totals[main] as number))
    parts[vertex] = found < 0 ? shares.length - 1 : found
    for (let band = 0; band < bands; band++) before[band]! += weights[vertex * bands + band] as number
  }
  return parts
}

/** From the vertex that is farthest from the given one, so that what is near comes together. */
function breadthFirst(graph: Graph, from: number): Int32Array {
  const far = visit(graph, from)
  return visit(graph, far.at(-1) ?? 0)
}

function visit({ size, offsets, neighbours }: Graph, from: number): Int32Array {
  const order = new Int32Array(size)
  const isSeen = new Uint8Array(size)
  let [end, begin] = [0, 0]
  for (let next = from, tried = 0; tried < size; tried++, next = (from + tried) % size) {
    if (isSeen[next]) continue
    isSeen[next] = 1
    order[end++] = next
    for (; begin < end; begin++) {
      const vertex = order[begin] as number
      for (let i = offsets[vertex] as number; i < (offsets[vertex + 1] as number); i++) {
        const other = neighbours[i] as number
        if (isSeen[other]) continue
        isSeen[other] = 1
        order[end++] = other
      }
    }
  }
  return order
}

/** How far the fullest part is above what it may have, where coarse vertices do not fit better. */
function excess(graph: Graph, parts: Int32Array, shares: readonly number[]): number {
  const limits = limitsOf(graph, shares)
  const loads = loadsOf(graph, parts, shares.length)
  let most = 0
  for (const [i, load] of loads.entries()) most = Math.max(most, load / (limits[i] || 1) - 1)
  return most
}
