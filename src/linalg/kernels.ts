import { addonPath, builtAddon } from '../native/addon.ts'
import * as plain from './plain.ts'

/**
 * Kernels on blocks, in place. Blocks are by column: element (i, j) of a block with m rows is at i + j * m. They may be in
 * shared memory.
 */
export interface Kernels {
  /** What computes: the name of a library, or 'TypeScript'. */
  readonly name: string
  /** C += alpha op(A) op(B): m x n, with k in between. */
  gemm(options: GemmOptions): void
  /** The lower Cholesky factor of n x n. Returns 0, or the first column that is not positive definite, from 1. */
  potrf(n: number, a: Float64Array): number
  /** B = alpha op(T)^-1 B (`L`), or alpha B op(T)^-1 (`R`), with B of m x n. */
  trsm(
    side: 'L' | 'R',
    triangle: plain.Triangle,
    m: number,
    n: number,
    t: Float64Array,
    b: Float64Array,
  ): void
  /** LU with row exchanges of m x n; `pivots` from 1. Returns 0, or the first column without a pivot, from 1. */
  getrf(m: number, n: number, a: Float64Array, pivots: Int32Array): number
  /** QR of tiles, where LAPACK has it; see `QrKernels`. */
  readonly qr: QrKernels | null
}

export interface GemmOptions {
  readonly m: number
  readonly n: number
  readonly k: number
  readonly alpha?: number
  readonly a: Float64Array
  readonly b: Float64Array
  readonly c: Float64Array
  readonly transposeA?: boolean
  readonly transposeB?: boolean
}

/** The four kernels of a tiled QR; `t` has `inner` x n elements. */
export interface QrKernels {
  readonly inner: number
  /** A = Q R of m x n: R in the upper half, the vectors of Q below it and in `t`. */
  geqrt(m: number, n: number, a: Float64Array, t: Float64Array): void
  /** C = Q^T C, with C of m x n, and Q of k columns as geqrt left it; `isBack`: C = Q C. */
  gemqrt(
    m: number,
    n: number,
    k: number,
    v: Float64Array,
    t: Float64Array,
    c: Float64Array,
    isBack?: boolean,
  ): void
  /** QR of R (n x n) above A (m x n). */
  tpqrt(m: number, n: number, r: Float64Array, ldr: number, a: Float64Array, t: Float64Array): void
  /** The same Q^T applied to C (k rows of `ldc`) above D (m x n). */
  tpmqrt(options: TpmqrtOptions): void
}

export interface TpmqrtOptions {
  readonly m: number
  readonly n: number
  readonly k: number
  readonly v: Float64Array
  readonly t: Float64Array
  readonly c: Float64Array
  readonly ldc: number
  readonly d: Float64Array
  readonly isBack?: boolean
}

interface Lapack {
  openLibrary(path: string): number
  routine(name: string): number
  invoke(routine: number, types: string, ...args: readonly unknown[]): void
  threads(count: number): number
}

const LIBRARIES = [
  'libopenblas.so.0',
  'libopenblas.so',
  'libflexiblas.so.3',
  'libmkl_rt.so.2',
  'liblapack.so.3',
]

let loaded: Kernels | null = null

/**
 * The kernels of this machine: those of OpenBLAS or another LAPACK if there is one, else in TypeScript. Each uses one
 * thread: tasks are what runs in parallel. `MILLRACE_BLAS` names a library, or is `off`.
 */
export function kernels(): Kernels {
  return (loaded ??= lapackKernels() ?? plainKernels())
}

/** Builds what calls the library, if it is not there; to be awaited once before the first task. */
export async function prepareKernels(): Promise<Kernels> {
  if (process.env['MILLRACE_BLAS'] !== 'off') await addonPath().catch(() => undefined)
  return kernels()
}

function lapackKernels(): Kernels | null {
  const asked = process.env['MILLRACE_BLAS']
  const path = asked === 'off' ? null : builtAddon()
  if (path === null) return null
  const module = { exports: {} }
  try {
    process.dlopen(module, path)
  } catch {
    return null
  }
  const lapack = module.exports as Lapack
  const name = (asked ? [asked] : LIBRARIES).find(library => lapack.openLibrary(library) === 1)
  if (name === undefined) return null
  const needed = ['dgemm_', 'dtrsm_', 'dpotrf_', 'dgetrf_'].map(routine => lapack.routine(routine))
  if (needed.includes(-1)) return null
  lapack.threads(1)
  return callsTo(lapack, name, needed as [number, number, number, number])
}

function callsTo(
  lapack: Lapack,
  name: string,
  [dgemm, dtrsm, dpotrf, dgetrf]: readonly [number, number, number, number],
): Kernels {
  const info = new Int32Array(1)
  const letter = (is: boolean | undefined): string => (is ? 'T' : 'N')
  return {
    name,
    gemm: ({ m, n, k, alpha = 1, a, b, c, transposeA, transposeB }) => {
      const lda = transposeA ? k : m
      const ldb = transposeB ? n : k
      const [ta, tb] = [letter(transposeA), letter(transposeB)]
      lapack.invoke(dgemm, 'cciiidpipidpi', ta, tb, m, n, k, alpha, a, lda, b, ldb, 1, c, m)
    },
    potrf: (n, a) => {
      lapack.invoke(dpotrf, 'cipip', 'L', n, a, n, info)
      return info[0] as number
    },
    trsm: (side, { half, transposed, isUnit }, m, n, t, b) => {
      const ldt = side === 'L' ? m : n
      const unit = isUnit ? 'U' : 'N'
      lapack.invoke(dtrsm, 'cccciidpipi', side, half, letter(transposed), unit, m, n, 1, t, ldt, b, m)
    },
    getrf: (m, n, a, pivots) => {
      lapack.invoke(dgetrf, 'iipipp', m, n, a, m, pivots, info)
      return info[0] as number
    },
    qr: qrOf(lapack),
  }
}

/** Columns that are done together inside a tile. */
const INNER = 32

function qrOf(lapack: Lapack): QrKernels | null {
  const names = ['dgeqrt_', 'dgemqrt_', 'dtpqrt_', 'dtpmqrt_'].map(name => lapack.routine(name))
  if (names.includes(-1)) return null
  const [dgeqrt, dgemqrt, dtpqrt, dtpmqrt] = names as [number, number, number, number]
  const info = new Int32Array(1)
  let room = new Float64Array(0)
  const work = (size: number): Float64Array => (room.length < size ? (room = new Float64Array(size)) : room)
  return {
    inner: INNER,
    geqrt: (m, n, a, t) => {
      const k = Math.min(m, n)
      const nb = Math.min(INNER, k)
      lapack.invoke(dgeqrt, 'iiipipipp', m, n, nb, a, m, t, INNER, work(INNER * n), info)
    },
    gemqrt: (m, n, k, v, t, c, isBack = false) => {
      const nb = Math.min(INNER, k)
      const trans = isBack ? 'N' : 'T'
      lapack.invoke(
        dgemqrt,
        'cciiiipipipipp',
        'L',
        trans,
        m,
        n,
        k,
        nb,
        v,
        m,
        t,
        INNER,
        c,
        m,
        work(INNER * n),
        info,
      )
    },
    tpqrt: (m, n, r, ldr, a, t) => {
      const nb = Math.min(INNER, n)
      lapack.invoke(dtpqrt, 'iiiipipipipp', m, n, 0, nb, r, ldr, a, m, t, INNER, work(INNER * n), info)
    },
    tpmqrt: ({ m, n, k, v, t, c, ldc, d, isBack = false }) => {
      const nb = Math.min(INNER, k)
      const trans = isBack ? 'N' : 'T'
      lapack.invoke(
        dtpmqrt,
        'cciiiiipipipipipp',
        'L',
        trans,
        m,
        n,
        k,
        0,
        nb,
        v,
        m,
        t,
        INNER,
        c,
        ldc,
        d,
        m,
        work(INNER * n),
        info,
      )
    },
  }
}

function plainKernels(): Kernels {
  return {
    name: 'TypeScript',
    gemm: ({ m, n, k, alpha = 1, a, b, c, transposeA = false, transposeB = false }) => {
      plain.gemm(transposeA, transposeB, m, n, k, alpha, a, transposeA ? k : m, b, transposeB ? n : k, c, m)
    },
    potrf: (n, a) => plain.potrf(n, a, n),
    trsm: (side, triangle, m, n, t, b) => {
      if (side === 'L') plain.solveLeft(triangle, m, n, t, m, b, m)
      else plain.solveRight(triangle, m, n, t, n, b, m)
    },
    getrf: (m, n, a, pivots) => plain.getrf(m, n, a, m, pivots),
    qr: null,
  }
}
