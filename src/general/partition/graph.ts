/**
 * An undirected graph to be divided. What belongs to one vertex stands behind each other: its neighbours, and the bonds to
 * them, from `offsets[vertex]` to `offsets[vertex + 1]`; its weights, one for each band, from `vertex * bands` on. Each
 * band is to be spread evenly by itself.
 */
export interface Graph {
  readonly size: number
  readonly offsets: Int32Array
  readonly neighbours: Int32Array
  readonly bonds: Float64Array
  readonly bands: number
  readonly weights: Float64Array
}

/** Edges as they come: each once, in either direction; bonds of equal ones are added up. */
export class Edges {
  readonly #from: number[] = []
  readonly #to: number[] = []
  readonly #bonds: number[] = []

  add(from: number, to: number, bond: number): void {
    if (from === to || bond <= 0) return
    this.#from.push(from)
    this.#to.push(to)
    this.#bonds.push(bond)
  }

  graph(size: number, bands: number, weights: Float64Array): Graph {
    const [from, to, bonds] = [this.#from, this.#to, this.#bonds]
    const starts = new Int32Array(size + 1)
    for (let i = 0; i < from.length; i++) {
      starts[(from[i] as number) + 1]!++
      starts[(to[i] as number) + 1]!++
    }
    for (let i = 0; i < size; i++) starts[i + 1]! += starts[i] as number
    const ends = Int32Array.from(starts)
    const others = new Int32Array(2 * from.length)
    const each = new Float64Array(2 * from.length)
    const put = (vertex: number, other: number, bond: number): void => {
      const at = ends[vertex]!++
      others[at] = other
      each[at] = bond
    }
    for (let i = 0; i < from.length; i++) {
      const [a, b, bond] = [from[i] as number, to[i] as number, bonds[i] as number]
      put(a, b, bond)
      put(b, a, bond)
    }
    return { size, bands, weights, ...joinEqual(size, starts, others, each) }
  }
}

/** Several edges between the same two become one. */
function joinEqual(
  size: number,
  starts: Int32Array,
  others: Int32Array,
  each: Float64Array,
): Pick<Graph, 'offsets' | 'neighbours' | 'bonds'> {
  const offsets = new Int32Array(size + 1)
  const place = new Int32Array(size).fill(-1)
  let end = 0
  for (let vertex = 0; vertex < size; vertex++) {
    const begin = end
    for (let i = starts[vertex] as number; i < (starts[vertex + 1] as number); i++) {
      const other = others[i] as number
      const known = place[other] as number
      if (known >= begin) each[known]! += each[i] as number
      else {
        place[other] = end
        others[end] = other
        each[end++] = each[i] as number
      }
    }
    offsets[vertex + 1] = end
  }
  return { offsets, neighbours: others.slice(0, end), bonds: each.slice(0, end) }
}

/** Bonds between vertices of different parts, all together. */
export function cutOf({ size, offsets, neighbours, bonds }: Graph, parts: ArrayLike<number>): number {
  let cut = 0
  for (let vertex = 0; vertex < size; vertex++) {
    for (let i = offsets[vertex] as number; i < (offsets[vertex + 1] as number); i++) {
      if (parts[vertex] !== parts[neighbours[i] as number]) cut += bonds[i] as number
    }
  }
  return cut / 2
}

/** What each part has of each band: `part * bands + band`. */
export function loadsOf(
  { size, bands, weights }: Graph,
  parts: ArrayLike<number>,
  count: number,
): Float64Array {
  const loads = new Float64Array(count * bands)
  for (let vertex = 0; vertex < size; vertex++) {
    const part = parts[vertex] as number
    for (let band = 0; band < bands; band++) {
      loads[part * bands + band]! += weights[vertex * bands + band] as number
    }
  }
  return loads
}

/** A part may have this much more of a band than its share. */
const TOLERANCE = 1.05

/** The most that each part may have of each band: its share and a twentieth, or its share and the heaviest vertex. */
export function limitsOf({ size, bands, weights }: Graph, shares: readonly number[]): Float64Array {
  const totals = new Float64Array(bands)
  const heaviest = new Float64Array(bands)
  for (let i = 0; i < size * bands; i++) {
    const weight = weights[i] as number
    totals[i % bands]! += weight
    if (weight > (heaviest[i % bands] as number)) heaviest[i % bands] = weight
  }
  const sum = shares.reduce((all, share) => all + share, 0)
  const limits = new Float64Array(shares.length * bands)
  for (const [part, share] of shares.entries()) {
    for (let band = 0; band < bands; band++) {
      const mean = ((totals[band] as number) * share) / sum
      limits[part * bands + band] = Math.max(mean * TOLERANCE, mean + (heaviest[band] as number))
    }
  }
  return limits
}
