/** Kernels in TypeScript, for machines without a BLAS. Matrices are by column, with `ld` elements from one to the next. */

/** Block sizes: a panel of A of this many rows and columns stays in the cache. */
const ROWS = 64
const DEPTH = 128

/** C += alpha op(A) op(B). Four columns of C are done at a time, so that each element of A is used four times. */
export function gemm(
  transA: boolean,
  transB: boolean,
  m: number,
  n: number,
  k: number,
  alpha: number,
  a: Float64Array,
  lda: number,
  b: Float64Array,
  ldb: number,
  c: Float64Array,
  ldc: number,
): void {
  const packed = new Float64Array(ROWS * DEPTH)
  const columns = new Float64Array(4 * DEPTH)
  for (let p0 = 0; p0 < k; p0 += DEPTH) {
    const depth = Math.min(DEPTH, k - p0)
    for (let i0 = 0; i0 < m; i0 += ROWS) {
      const rows = Math.min(ROWS, m - i0)
      // By row, so that the inner loop walks through memory in order.
      for (let i = 0; i < rows; i++) {
        for (let p = 0; p < depth; p++) {
          packed[i * DEPTH + p] = transA
            ? (a[p0 + p + (i0 + i) * lda] as number)
            : (a[i0 + i + (p0 + p) * lda] as number)
        }
      }
      for (let j0 = 0; j0 < n; j0 += 4) {
        const width = Math.min(4, n - j0)
        for (let j = 0; j < 4; j++) {
          for (let p = 0; p < depth; p++) {
            columns[j * DEPTH + p] =
              j >= width ? 0 : ((transB ? b[j0 + j + (p0 + p) * ldb] : b[p0 + p + (j0 + j) * ldb]) as number)
          }
        }
        rowsTimesFour(packed, columns, rows, depth, width, alpha, c, i0 + j0 * ldc, ldc)
      }
    }
  }
}

/** Two rows by four columns at a time: eight sums that stay in registers. */
function rowsTimesFour(
  a: Float64Array,
  b: Float64Array,
  rows: number,
  depth: number,
  width: number,
  alpha: number,
  c: Float64Array,
  at: number,
  ldc: number,
): void {
  for (let i = 0; i < rows; i += 2) {
    const first = i * DEPTH
    const second = i + 1 < rows ? first + DEPTH : first
    let s00 = 0
    let s01 = 0
    let s02 = 0
    let s03 = 0
    let s10 = 0
    let s11 = 0
    let s12 = 0
    let s13 = 0
    for (let p = 0; p < depth; p++) {
      const x = a[first + p] as number
      const y = a[second + p] as number
      const b0 = b[p] as number
      const b1 = b[DEPTH + p] as number
      const b2 = b[2 * DEPTH + p] as number
      const b3 = b[3 * DEPTH + p] as number
      s00 += x * b0
      s01 += x * b1
      s02 += x * b2
      s03 += x * b3
      s10 += y * b0
      s11 += y * b1
      s12 += y * b2
      s13 += y * b3
    }
    add(c, at + i, ldc, width, alpha, s00, s01, s02, s03)
    if (i + 1 < rows) add(c, at + i + 1, ldc, width, alpha, s10, s11, s12, s13)
  }
}

function add(
  c: Float64Array,
  at: number,
  ldc: number,
  width: number,
  alpha: number,
  s0: number,
  s1: number,
  s2: number,
  s3: number,
): void {
  c[at] = (c[at] as number) + alpha * s0
  if (width > 1) c[at + ldc] = (c[at + ldc] as number) + alpha * s1
  if (width > 2) c[at + 2 * ldc] = (c[at + 2 * ldc] as number) + alpha * s2
  if (width > 3) c[at + 3 * ldc] = (c[at + 3 * ldc] as number) + alpha * s3
}

/** The lower Cholesky factor in place of the lower half. Returns 0, or the first column that is not positive, from 1. */
export function potrf(n: number, a: Float64Array, lda: number): number {
  for (let j = 0; j < n; j++) {
    let d = a[j + j * lda] as number
    for (let p = 0; p < j; p++) d -= (a[j + p * lda] as number) ** 2
    if (!(d > 0)) return j + 1
    const root = Math.sqrt(d)
    a[j + j * lda] = root
    for (let p = 0; p < j; p++) {
      const x = a[j + p * lda] as number
      if (x === 0) continue
      for (let i = j + 1; i < n; i++)
        a[i + j * lda] = (a[i + j * lda] as number) - x * (a[i + p * lda] as number)
    }
    for (let i = j + 1; i < n; i++) a[i + j * lda] = (a[i + j * lda] as number) / root
  }
  return 0
}

export interface Triangle {
  /** L for the lower half of the matrix, U for the upper. */
  readonly half: 'L' | 'U'
  readonly transposed: boolean
  /** Its diagonal is one, and is not looked at. */
  readonly isUnit: boolean
}

/** B = op(T)^-1 B, with T of n x n and B of n x columns. */
export function solveLeft(
  { half, transposed, isUnit }: Triangle,
  n: number,
  columns: number,
  t: Float64Array,
  ldt: number,
  b: Float64Array,
  ldb: number,
): void {
  const isForward = (half === 'L') !== transposed
  const at = (i: number, j: number): number => (transposed ? t[j + i * ldt] : t[i + j * ldt]) as number
  for (let c = 0; c < columns; c++) {
    for (let s = 0; s < n; s++) {
      const j = isForward ? s : n - 1 - s
      const x = isUnit ? (b[j + c * ldb] as number) : (b[j + c * ldb] as number) / at(j, j)
      b[j + c * ldb] = x
      if (x === 0) continue
      const from = isForward ? j + 1 : 0
      const to = isForward ? n : j
      for (let i = from; i < to; i++) b[i + c * ldb] = (b[i + c * ldb] as number) - x * at(i, j)
    }
  }
}

/** B = B op(T)^-1, with T of n x n and B of rows x n. */
export function solveRight(
  { half, transposed, isUnit }: Triangle,
  rows: number,
  n: number,
  t: Float64Array,
  ldt: number,
  b: Float64Array,
  ldb: number,
): void {
  // Column j of the result needs those that come before it in the triangle.
  const isForward = (half === 'U') !== transposed
  const at = (i: number, j: number): number => (transposed ? t[j + i * ldt] : t[i + j * ldt]) as number
  for (let s = 0; s < n; s++) {
    const j = isForward ? s : n - 1 - s
    const from = isForward ? 0 : j + 1
    const to = isForward ? j : n
    for (let p = from; p < to; p++) {
      const x = at(p, j)
      if (x === 0) continue
      for (let i = 0; i < rows; i++)
        b[i + j * ldb] = (b[i + j * ldb] as number) - x * (b[i + p * ldb] as number)
    }
    if (isUnit) continue
    const d = at(j, j)
    for (let i = 0; i < rows; i++) b[i + j * ldb] = (b[i + j * ldb] as number) / d
  }
}

/** LU with row exchanges in place; `pivots` from 1. Returns 0, or the first column without a pivot. */
export function getrf(m: number, n: number, a: Float64Array, lda: number, pivots: Int32Array): number {
  let info = 0
  for (let j = 0; j < Math.min(m, n); j++) {
    let best = j
    for (let i = j + 1; i < m; i++) {
      if (Math.abs(a[i + j * lda] as number) > Math.abs(a[best + j * lda] as number)) best = i
    }
    pivots[j] = best + 1
    if (a[best + j * lda] === 0) {
      info ||= j + 1
      continue
    }
    if (best !== j) swapRows(n, a, lda, j, best)
    const d = a[j + j * lda] as number
    for (let i = j + 1; i < m; i++) a[i + j * lda] = (a[i + j * lda] as number) / d
    for (let c = j + 1; c < n; c++) {
      const x = a[j + c * lda] as number
      if (x === 0) continue
      for (let i = j + 1; i < m; i++)
        a[i + c * lda] = (a[i + c * lda] as number) - x * (a[i + j * lda] as number)
    }
  }
  return info
}

export function swapRows(n: number, a: Float64Array, lda: number, one: number, other: number): void {
  for (let c = 0; c < n; c++) {
    const kept = a[one + c * lda] as number
    a[one + c * lda] = a[other + c * lda] as number
    a[other + c * lda] = kept
  }
}
