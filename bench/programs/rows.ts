import { multiplyAdd } from './kernel.ts'
import type { Blocks } from './kernel.ts'

/** Computes each `step`th row of blocks. */
export function computeRows(a: Blocks, b: Blocks, c: Blocks, first: number, step: number): void {
  const count = a.length
  for (let i = first; i < count; i += step) {
    for (let j = 0; j < count; j++) {
      for (let k = 0; k < count; k++) {
        multiplyAdd(a[i]?.[k] as Float64Array, b[k]?.[j] as Float64Array, c[i]?.[j] as Float64Array)
      }
    }
  }
}
