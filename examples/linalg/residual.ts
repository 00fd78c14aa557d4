import type { BlockMatrix } from './blocks.ts'

/** Numbers between -1 and 1, the same for the same seed. */
export function random(seed: number): () => number {
  let state = seed >>> 0 || 1
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 31 - 1
  }
}

/** |A x - b| / (|A| |x| n eps), of the largest elements: below some tens, x is as good as can be. */
export function residual(a: BlockMatrix, x: BlockMatrix, b: BlockMatrix): number {
  let worst = 0
  let norm = 0
  let size = 0
  for (let i = 0; i < a.rows; i++) {
    let sum = -b.get(i, 0)
    let row = 0
    for (let j = 0; j < a.columns; j++) {
      sum += a.get(i, j) * x.get(j, 0)
      row += Math.abs(a.get(i, j))
    }
    worst = Math.max(worst, Math.abs(sum))
    norm = Math.max(norm, row)
    size = Math.max(size, Math.abs(x.get(i, 0)))
  }
  return worst / (norm * size * a.columns * Number.EPSILON)
}
