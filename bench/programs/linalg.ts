/** `linalg.ts SYSTEM WHAT N BLOCK`: GFLOP/s of one algorithm, checked by its residual. */
import { main } from 'millrace'
import { prepareKernels } from 'millrace/linalg'
import {
  cholesky,
  finished,
  lu,
  matmul,
  qr,
  solveLu,
  solveTriangular,
} from '../../examples/linalg/algorithms.ts'
import { BlockMatrix } from '../../examples/linalg/blocks.ts'
import { random, residual } from '../../examples/linalg/residual.ts'
import { addonPath } from '../../src/native/addon.ts'

const [system, what, ...sizes] = process.argv.slice(2) as [string, string, string, string]
const [n, block] = sizes.map(Number) as [number, number]

/** Operations, by the usual count. */
const WORK: Record<string, number> = { matmul: 2, cholesky: 1 / 3, lu: 2 / 3, qr: 4 / 3 }
const next = random(3)

/** On a machine that does other things too, CPU time says more: GFLOP for each second of it. */
const byCpu = process.env['BENCH_CPU_TIME'] === '1'

async function timed(body: () => unknown): Promise<void> {
  const began = performance.now()
  const used = process.cpuUsage()
  await body()
  const { user, system } = process.cpuUsage(used)
  const seconds = byCpu ? (user + system) / 1e6 : (performance.now() - began) / 1000
  console.log(((WORK[what] as number) * n ** 3) / seconds / 1e9)
}

async function tiled(): Promise<void> {
  await prepareKernels()
  const a = BlockMatrix.from(n, n, block, (i, j) => next() + (i === j ? n : 0))
  const s = what === 'cholesky' ? BlockMatrix.from(n, n, block, (i, j) => a.get(i, j) + a.get(j, i)) : a
  const b = BlockMatrix.from(n, 1, block, () => next())
  const [f, x] = [s.copy(), b.copy()]
  // As peers, which have called the library before: threads are there, and code is compiled. As many blocks, but small ones.
  const side = 16 * Math.ceil(n / block)
  const warm = BlockMatrix.from(side, side, 16, (i, j) => (i === j ? 9 : 1 / (2 + i + j)))
  if (what === 'cholesky') cholesky(warm)
  else if (what === 'lu') lu(warm)
  else if (what === 'qr') qr(warm)
  else matmul(warm, warm, new BlockMatrix(side, side, 16))
  await finished(warm)
  if (what === 'matmul') {
    const c = new BlockMatrix(n, n, block)
    await timed(() => {
      matmul(a, f, c)
      return finished(c)
    })
    const at = (i: number, j: number): number =>
      Array.from({ length: n }, (_, k) => a.get(i, k) * f.get(k, j)).reduce((p, q) => p + q)
    for (const i of [0, n >> 1, n - 1]) {
      if (!(Math.abs(at(i, n - 1 - i) - c.get(i, n - 1 - i)) < 1e-13 * n * n))
        throw new Error('the product is wrong')
    }
    return
  }
  let factors: ReturnType<typeof lu> | null = null
  await timed(() => {
    if (what === 'cholesky') cholesky(f)
    else if (what === 'lu') factors = lu(f)
    else qr(f, x)
    return finished(f)
  })
  if (what === 'cholesky') {
    solveTriangular(f, x, 'LN')
    solveTriangular(f, x, 'LT')
  } else if (factors) solveLu(f, factors, x)
  else solveTriangular(f, x, 'UN')
  const error = residual(s, await finished(x), b)
  if (!(error < 30)) throw new Error(`the residual is ${error}`)
}

/** One call of the library, with as many threads as there are CPUs. */
async function library(): Promise<void> {
  const module = { exports: {} }
  process.dlopen(module, await addonPath())
  const blas = process.env['MILLRACE_BLAS'] ?? 'libopenblas.so.0'
  const lapack = module.exports as {
    openLibrary(path: string): number
    routine(name: string): number
    threads(count: number): number
    invoke(routine: number, types: string, ...args: readonly unknown[]): void
  }
  if (!lapack.openLibrary(blas)) throw new Error(`there is no ${blas}`)
  lapack.threads(Number(process.env['BENCH_CPUS'] ?? 2))
  const a = new Float64Array(n * n).map((_, at) => next() + (at % (n + 1) === 0 ? 2 * n : 0))
  const [b, c, info, pivots] = [a.slice(), new Float64Array(n * n), new Int32Array(1), new Int32Array(n)]
  const room = new Float64Array(n * 64)
  const call = (name: string, types: string, ...args: readonly unknown[]): void =>
    lapack.invoke(lapack.routine(name), types, ...args)
  call('dgemm_', 'cciiidpipidpi', 'N', 'N', 256, 256, 256, 1, a, n, b, n, 0, c, n)
  await timed(() => {
    if (what === 'matmul') call('dgemm_', 'cciiidpipidpi', 'N', 'N', n, n, n, 1, a, n, b, n, 0, c, n)
    else if (what === 'cholesky') call('dpotrf_', 'cipip', 'L', n, a, n, info)
    else if (what === 'lu') call('dgetrf_', 'iipipp', n, n, a, n, pivots, info)
    else call('dgeqrf_', 'iipippip', n, n, a, n, c, room, room.length, info)
  })
}

main(system === 'library' ? library : tiled)
