/** Points in fragments, and one step of Lloyd's algorithm for a fragment. Coordinates are whole numbers, so sums are exact. */

export interface Partial {
  /** Of the coordinates of the points that are closest to each centre, centre by centre. */
  sums: Float64Array
  counts: Float64Array
}

export function makeFragment(fragment: number, points: number, dimensions: number): Float64Array {
  const values = new Float64Array(points * dimensions)
  let state = (fragment + 1) * 2_654_435_761
  for (let i = 0; i < values.length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    values[i] = (state >>> 8) % 1000
  }
  return values
}

export function assign(points: Float64Array, centres: Float64Array, dimensions: number): Partial {
  const count = centres.length / dimensions
  const partial = { sums: new Float64Array(centres.length), counts: new Float64Array(count) }
  for (let at = 0; at < points.length; at += dimensions) {
    const closest = closestTo(points, at, centres, dimensions)
    partial.counts[closest] = (partial.counts[closest] ?? 0) + 1
    for (let d = 0; d < dimensions; d++) {
      const i = closest * dimensions + d
      partial.sums[i] = (partial.sums[i] ?? 0) + (points[at + d] ?? 0)
    }
  }
  return partial
}

function closestTo(points: Float64Array, at: number, centres: Float64Array, dimensions: number): number {
  let [best, least] = [0, Infinity]
  for (let c = 0; c * dimensions < centres.length; c++) {
    let distance = 0
    for (let d = 0; d < dimensions; d++) {
      distance += ((points[at + d] ?? 0) - (centres[c * dimensions + d] ?? 0)) ** 2
    }
    if (distance < least) [best, least] = [c, distance]
  }
  return best
}

export function addPartials(a: Partial, b: Partial): Partial {
  return {
    sums: a.sums.map((sum, i) => sum + (b.sums[i] ?? 0)),
    counts: a.counts.map((n, i) => n + (b.counts[i] ?? 0)),
  }
}

/** A centre that no point is closest to stays where it is. */
export function moveCentres(
  { sums, counts }: Partial,
  centres: Float64Array,
  dimensions: number,
): Float64Array {
  return centres.map((value, i) => {
    const count = counts[Math.floor(i / dimensions)] ?? 0
    return count === 0 ? value : (sums[i] ?? 0) / count
  })
}
