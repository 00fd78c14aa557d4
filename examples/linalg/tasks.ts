import { IN, INOUT, task } from 'millrace'
import { kernels } from 'millrace/linalg'
import type { QrKernels } from 'millrace/linalg'

/** One task per kernel and block. The last argument is its priority: how much of the critical path comes after it. */

const last = (...args: readonly unknown[]): number => args[args.length - 1] as number

/** C += alpha op(A) op(B); `how` has a T where a matrix is transposed, such as 'NT'. */
export const multiply = task(
  { name: 'multiply', params: [IN, IN, INOUT, IN, IN, IN, IN, IN, IN], priority: last },
  (
    a: Float64Array,
    b: Float64Array,
    c: Float64Array,
    how: string,
    m: number,
    n: number,
    k: number,
    alpha: number,
    _priority: number,
  ) => {
    kernels().gemm({ m, n, k, alpha, a, b, c, transposeA: how[0] === 'T', transposeB: how[1] === 'T' })
  },
)

/** The Cholesky factor of a block on the diagonal; `from` is its first column in the matrix. */
export const factor = task(
  { name: 'factor', params: [INOUT, IN, IN, IN], priority: last },
  (a: Float64Array, n: number, from: number, _priority: number) => {
    const column = kernels().potrf(n, a)
    if (column !== 0)
      throw new RangeError(`the matrix is not positive definite: column ${from + column - 1} fails`)
  },
)

/** Solves with a triangle, on the left or right of B; `how` is its half, a T where it is transposed, a U where its diagonal is one. */
export const solve = task(
  { name: 'solve', params: [IN, INOUT, IN, IN, IN, IN, IN], priority: last },
  (
    t: Float64Array,
    b: Float64Array,
    side: 'L' | 'R',
    how: string,
    m: number,
    n: number,
    _priority: number,
  ) => {
    const triangle = { half: how[0] as 'L' | 'U', transposed: how[1] === 'T', isUnit: how[2] === 'U' }
    kernels().trsm(side, triangle, m, n, t, b)
  },
)

/** Where a thread puts the blocks of a panel one below the other. New memory would cost as much as the copies. */
let room = new Float64Array(0)

/** LU with row exchanges of the blocks of a column, which are one below the other. Gives the first column without a pivot, or 0. */
export const panel = task(
  { name: 'panel', params: [INOUT, INOUT, IN, IN, IN, IN], priority: last },
  (
    blocks: Float64Array[],
    pivots: Int32Array,
    rows: number,
    columns: number,
    height: number,
    _priority: number,
  ) => {
    if (room.length < rows * columns) room = new Float64Array(rows * columns)
    const whole = room.subarray(0, rows * columns)
    eachRun(blocks, rows, columns, height, (block, from, to, length) =>
      whole.set(block.subarray(from, from + length), to),
    )
    const info = kernels().getrf(rows, columns, whole, pivots)
    eachRun(blocks, rows, columns, height, (block, from, to, length) =>
      block.set(whole.subarray(to, to + length), from),
    )
    return info
  },
)

/** The row exchanges of a panel in another column of blocks: the rows of the first block with others. */
export const exchange = task(
  { name: 'exchange', params: [INOUT, IN, IN, IN, IN, IN, IN], priority: last },
  (
    blocks: Float64Array[],
    pivots: Int32Array,
    count: number,
    rows: number,
    columns: number,
    height: number,
    _priority: number,
  ) => {
    const heightOf = (i: number): number => Math.min(height, rows - i * height)
    // Rows are exchanged column by column, because a column is what lies together.
    const first = blocks[0] as Float64Array
    const swaps = Array.from(pivots.subarray(0, count), (pivot, row) => {
      const i = Math.floor((pivot - 1) / height)
      return { row, block: blocks[i] as Float64Array, at: (pivot - 1) % height, below: heightOf(i) }
    }).filter(({ row, block, at }) => block !== first || at !== row)
    for (let j = 0; j < columns; j++) {
      const own = j * heightOf(0)
      for (const { row, block, at, below } of swaps) {
        const kept = first[own + row] as number
        first[own + row] = block[at + j * below] as number
        block[at + j * below] = kept
      }
    }
  },
)

/** Calls back for each column of each block: where it is there, and where in the whole. */
function eachRun(
  blocks: readonly Float64Array[],
  rows: number,
  columns: number,
  height: number,
  run: (block: Float64Array, from: number, to: number, length: number) => void,
): void {
  blocks.forEach((block, i) => {
    const length = Math.min(height, rows - i * height)
    for (let j = 0; j < columns; j++) run(block, j * length, i * height + j * rows, length)
  })
}

function qr(): QrKernels {
  const { qr: found, name } = kernels()
  if (!found) throw new Error(`QR needs LAPACK, and there is only ${name}: install libopenblas0`)
  return found
}

/** QR of a block on the diagonal. */
export const qrFactor = task(
  { name: 'qrFactor', params: [INOUT, INOUT, IN, IN, IN], priority: last },
  (a: Float64Array, t: Float64Array, m: number, n: number, _priority: number) => qr().geqrt(m, n, a, t),
)

/** Q^T of a block on the diagonal, applied to one on its right. */
export const qrApply = task(
  { name: 'qrApply', params: [IN, IN, INOUT, IN, IN, IN, IN], priority: last },
  (v: Float64Array, t: Float64Array, c: Float64Array, m: number, n: number, k: number, _priority: number) =>
    qr().gemqrt(m, n, k, v, t, c),
)

/** QR of the triangle R above a block. */
export const qrBelow = task(
  { name: 'qrBelow', params: [INOUT, INOUT, INOUT, IN, IN, IN, IN], priority: last },
  (r: Float64Array, a: Float64Array, t: Float64Array, m: number, n: number, ldr: number, _priority: number) =>
    qr().tpqrt(m, n, r, ldr, a, t),
)

/** Its Q^T, applied to the two blocks on their right. */
export const qrApplyBelow = task(
  { name: 'qrApplyBelow', params: [IN, IN, INOUT, INOUT, IN, IN, IN, IN, IN], priority: last },
  (
    v: Float64Array,
    t: Float64Array,
    c: Float64Array,
    d: Float64Array,
    m: number,
    n: number,
    k: number,
    ldc: number,
    _priority: number,
  ) => qr().tpmqrt({ m, n, k, v, t, c, ldc, d }),
)
