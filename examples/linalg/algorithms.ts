import { shared, waitOn } from 'millrace'
import type { Future } from 'millrace'
import type { BlockMatrix } from './blocks.ts'
import {
  exchange,
  factor,
  multiply,
  panel,
  qrApply,
  qrApplyBelow,
  qrBelow,
  qrFactor,
  solve,
} from './tasks.ts'

/**
 * Tiled algorithms. They only call tasks: which of them wait for which follows from the blocks that they read and write, so
 * there is no barrier between steps. Steps that others wait for have a higher priority.
 */

/** C += A B. */
export function matmul(a: BlockMatrix, b: BlockMatrix, c: BlockMatrix): void {
  for (let k = 0; k < a.across; k++) {
    for (let j = 0; j < c.across; j++) {
      for (let i = 0; i < c.down; i++) {
        multiply(a.at(i, k), b.at(k, j), c.at(i, j), 'NN', c.height(i), c.width(j), a.width(k), 1, 0)
      }
    }
  }
}

/** The lower Cholesky factor in place of the lower half; blocks above the diagonal are not looked at. */
export function cholesky(a: BlockMatrix): void {
  const { down } = a
  for (let k = 0; k < down; k++) {
    const urgent = 3 * (down - k)
    const width = a.width(k)
    factor(a.at(k, k), width, k * a.block, urgent + 2)
    for (let i = k + 1; i < down; i++) {
      solve(a.at(k, k), a.at(i, k), 'R', 'LT', a.height(i), width, i === k + 1 ? urgent + 1 : urgent)
    }
    for (let j = k + 1; j < down; j++) {
      const next = j === k + 1 ? urgent - 1 : 0
      for (let i = j; i < down; i++) {
        multiply(a.at(i, k), a.at(j, k), a.at(i, j), 'NT', a.height(i), a.width(j), width, -1, next)
      }
    }
  }
}

/** B = op(L)^-1 B or op(U)^-1 B for a triangular matrix of blocks; `how` as in `solve`. */
export function solveTriangular(t: BlockMatrix, b: BlockMatrix, how: string): void {
  const isTransposed = how[1] === 'T'
  const isForward = (how[0] === 'L') !== isTransposed
  const order = Array.from({ length: t.down }, (_, i) => (isForward ? i : t.down - 1 - i))
  order.forEach((k, step) => {
    for (let j = 0; j < b.across; j++) {
      solve(t.at(k, k), b.at(k, j), 'L', how, b.height(k), b.width(j), t.down - step)
      for (const i of order.slice(step + 1)) {
        const block = isTransposed ? t.at(k, i) : t.at(i, k)
        const form = isTransposed ? 'TN' : 'NN'
        multiply(block, b.at(k, j), b.at(i, j), form, b.height(i), b.width(j), b.height(k), -1, 0)
      }
    }
  })
}

export interface Lu {
  /** Of each column of blocks, by which rows its rows were exchanged, from 1, counted from its diagonal. */
  readonly pivots: readonly Int32Array[]
  /** Waits, and throws where the matrix is singular. */
  check(): Promise<void>
}

/** LU with row exchanges, in place. */
export function lu(a: BlockMatrix): Lu {
  const steps = Math.min(a.down, a.across)
  const pivots: Int32Array[] = []
  const found: Future<number>[] = []
  for (let k = 0; k < steps; k++) {
    const rows = a.rows - k * a.block
    const urgent = 3 * (steps - k)
    const count = Math.min(rows, a.width(k))
    const own = shared(Int32Array, count)
    pivots.push(own)
    found.push(panel(a.column(k, k), own, rows, a.width(k), a.block, urgent + 2))
    for (let j = 0; j < a.across; j++) {
      if (j === k) continue
      const isNext = j === k + 1
      exchange(a.column(j, k), own, count, rows, a.width(j), a.block, j < k ? -1 : isNext ? urgent + 1 : 0)
      if (j < k) continue
      solve(a.at(k, k), a.at(k, j), 'L', 'LNU', count, a.width(j), isNext ? urgent + 1 : 0)
      for (let i = k + 1; i < a.down; i++) {
        const next = isNext ? urgent : 0
        multiply(a.at(i, k), a.at(k, j), a.at(i, j), 'NN', a.height(i), a.width(j), a.width(k), -1, next)
      }
    }
  }
  const check = async (): Promise<void> => {
    const columns = await waitOn(found)
    const step = columns.findIndex(column => column !== 0)
    if (step < 0) return
    throw new RangeError(
      `the matrix is singular: column ${step * a.block + (columns[step] as number) - 1} has no pivot`,
    )
  }
  return { pivots, check }
}

/** B = A^-1 B, of what `lu` left of A. */
export function solveLu(a: BlockMatrix, { pivots }: Lu, b: BlockMatrix): void {
  pivots.forEach((own, k) => {
    const rows = b.rows - k * b.block
    for (let j = 0; j < b.across; j++) {
      exchange(b.column(j, k), own, own.length, rows, b.width(j), b.block, 1)
    }
  })
  solveTriangular(a, b, 'LNU')
  solveTriangular(a, b, 'UN')
}

/** QR in place: R in the upper half; Q is left in the rest and in `t`. Applies Q^T to `also`, if it is given. */
export function qr(a: BlockMatrix, also: BlockMatrix | null = null): void {
  const inner = 32
  const steps = Math.min(a.down, a.across)
  for (let k = 0; k < steps; k++) {
    const urgent = 3 * (steps - k)
    const [m, n] = [a.height(k), a.width(k)]
    const t = shared(Float64Array, inner * n)
    qrFactor(a.at(k, k), t, m, n, urgent + 2)
    const right = rightOf(a, also, k)
    for (const { matrix, j } of right) {
      qrApply(
        a.at(k, k),
        t,
        matrix.at(k, j),
        m,
        matrix.width(j),
        Math.min(m, n),
        j === k + 1 ? urgent + 1 : 0,
      )
    }
    for (let i = k + 1; i < a.down; i++) {
      const below = shared(Float64Array, inner * n)
      qrBelow(a.at(k, k), a.at(i, k), below, a.height(i), n, m, urgent + 1)
      for (const { matrix, j } of right) {
        const next = j === k + 1 ? urgent : 0
        const width = matrix.width(j)
        qrApplyBelow(a.at(i, k), below, matrix.at(k, j), matrix.at(i, j), a.height(i), width, n, m, next)
      }
    }
  }
}

function rightOf(a: BlockMatrix, also: BlockMatrix | null, k: number): { matrix: BlockMatrix; j: number }[] {
  const own = Array.from({ length: a.across - k - 1 }, (_, i) => ({ matrix: a, j: k + 1 + i }))
  const more = also ? Array.from({ length: also.across }, (_, j) => ({ matrix: also, j })) : []
  return [...own, ...more]
}

/** Waits for all blocks. */
export async function finished(matrix: BlockMatrix): Promise<BlockMatrix> {
  await waitOn([...matrix.all()])
  return matrix
}
