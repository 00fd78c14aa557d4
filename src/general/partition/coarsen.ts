import { Edges } from './graph.ts'
import type { Graph } from './graph.ts'

/** A graph of fewer vertices, and the one that each vertex has become part of. */
export interface Coarser {
  readonly graph: Graph
  readonly into: Int32Array
}

/**
 * Joins pairs that have the strongest bond, so that what belongs together moves together. `most`: no vertex becomes heavier than
 * this in any band, so that the parts can still be made even.
 */
export function coarsen(graph: Graph, most: Float64Array): Coarser {
  const { size, offsets, neighbours, bonds, bands, weights } = graph
  const into = new Int32Array(size).fill(-1)
  let count = 0
  const fits = (a: number, b: number): boolean => {
    for (let band = 0; band < bands; band++) {
      const sum = (weights[a * bands + band] as number) + (weights[b * bands + band] as number)
      if (sum > (most[band] as number)) return false
    }
    return true
  }
  // Those with few neighbours have the least choice.
  const order = Uint32Array.from({ length: size }, (_, i) => i)
  const degree = (vertex: number): number => (offsets[vertex + 1] as number) - (offsets[vertex] as number)
  order.sort((a, b) => degree(a) - degree(b) || a - b)
  for (const vertex of order) {
    if ((into[vertex] as number) >= 0) continue
    let best = -1
    let strongest = 0
    for (let i = offsets[vertex] as number; i < (offsets[vertex + 1] as number); i++) {
      const other = neighbours[i] as number
      const bond = bonds[i] as number
      if ((into[other] as number) >= 0 || bond <= strongest || !fits(vertex, other)) continue
      best = other
      strongest = bond
    }
    into[vertex] = count
    if (best >= 0) into[best] = count
    count++
  }
  return { graph: joined(graph, into, count), into }
}

function joined(graph: Graph, into: Int32Array, count: number): Graph {
  const { size, offsets, neighbours, bonds, bands, weights } = graph
  const sums = new Float64Array(count * bands)
  const edges = new Edges()
  for (let vertex = 0; vertex < size; vertex++) {
    const own = into[vertex] as number
    for (let band = 0; band < bands; band++) {
      sums[own * bands + band]! += weights[vertex * bands + band] as number
    }
    for (let i = offsets[vertex] as number; i < (offsets[vertex + 1] as number); i++) {
      const other = neighbours[i] as number
      if (vertex < other) edges.add(own, into[other] as number, bonds[i] as number)
    }
  }
  return edges.graph(count, bands, sums)
}
