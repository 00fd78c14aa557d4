/** Kernels on square blocks of b x b numbers, row by row: what a task does, and what the sequential run does too. */

/** c += a * b, or c -= a * b when `sign` is -1. */
export function gemm(a: Float64Array, b: Float64Array, c: Float64Array, size: number, sign = 1): void {
  for (let i = 0; i < size; i++) {
    for (let k = 0; k < size; k++) {
      const factor = sign * (a[i * size + k] as number)
      const row = k * size
      const out = i * size
      for (let j = 0; j < size; j++) c[out + j] = (c[out + j] as number) + factor * (b[row + j] as number)
    }
  }
}

/** c -= a * bᵀ */
export function gemmTransposed(a: Float64Array, b: Float64Array, c: Float64Array, size: number): void {
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      let sum = 0
      for (let k = 0; k < size; k++) sum += (a[i * size + k] as number) * (b[j * size + k] as number)
      c[i * size + j] = (c[i * size + j] as number) - sum
    }
  }
}

/** Cholesky factor of one block, in place; the upper half becomes zero. */
export function potrf(a: Float64Array, size: number): void {
  for (let j = 0; j < size; j++) {
    for (let i = j; i < size; i++) {
      let sum = a[i * size + j] as number
      for (let k = 0; k < j; k++) sum -= (a[i * size + k] as number) * (a[j * size + k] as number)
      if (i === j) {
        if (sum <= 0) throw new Error(`the matrix is not positive definite: pivot ${j} is ${sum}`)
        a[j * size + j] = Math.sqrt(sum)
      } else a[i * size + j] = sum / (a[j * size + j] as number)
    }
    for (let k = j + 1; k < size; k++) a[j * size + k] = 0
  }
}

/** Solves x * lᵀ = a for x, in place of a. */
export function trsm(l: Float64Array, a: Float64Array, size: number): void {
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      let sum = a[i * size + j] as number
      for (let k = 0; k < j; k++) sum -= (a[i * size + k] as number) * (l[j * size + k] as number)
      a[i * size + j] = sum / (l[j * size + j] as number)
    }
  }
}

/** A matrix as a grid of blocks. */
export type Blocked = Float64Array[][]

/** Numbers that look random and are the same on every machine. */
export function pseudoRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32 - 0.5
  }
}

/** The largest difference between two matrices, relative to the largest number in the first. */
export function difference(a: Blocked, b: Blocked): number {
  let most = 0
  let scale = 0
  a.forEach((row, i) =>
    row.forEach((block, j) =>
      block.forEach((value, at) => {
        scale = Math.max(scale, Math.abs(value))
        most = Math.max(most, Math.abs(value - (b[i]?.[j]?.[at] as number)))
      }),
    ),
  )
  return most / scale
}
