/**
 * Blocked matrix multiplication and Cholesky factorization: the sequential program, and the same program
 * with its kernels marked as tasks. The loops are the same; only the functions that they call differ.
 *
 *     npm start                                  this demo, with a trace
 *     npx millrace run examples/demo/demo.ts -- 1024 128
 */
import { IN, INOUT, main, shared, task, waitOn } from 'millrace'
import { prepareKernels } from 'millrace/linalg'
import { cholesky as tiled, finished, matmul } from '../linalg/algorithms.ts'
import { BlockMatrix } from '../linalg/blocks.ts'
import { difference, gemm, gemmTransposed, potrf, pseudoRandom, trsm } from './blocks.ts'
import type { Blocked } from './blocks.ts'

export const multiply = task({ name: 'multiply', params: [IN, IN, INOUT, IN] }, gemm)
export const update = task({ name: 'update', params: [IN, IN, INOUT, IN] }, gemmTransposed)
export const factor = task({ name: 'factor', params: [INOUT, IN], priority: 2 }, potrf)
export const solve = task({ name: 'solve', params: [IN, INOUT, IN], priority: 1 }, trsm)

const sequential = { multiply: gemm, update: gemmTransposed, factor: potrf, solve: trsm }
const parallel = { multiply, update, factor, solve }
type Kernels = {
  multiply: (a: Float64Array, b: Float64Array, c: Float64Array, size: number) => unknown
  update: (a: Float64Array, b: Float64Array, c: Float64Array, size: number) => unknown
  factor: (a: Float64Array, size: number) => unknown
  solve: (l: Float64Array, a: Float64Array, size: number) => unknown
}

/** c = a * b */
function multiplyBlocks(
  { multiply: kernel }: Kernels,
  a: Blocked,
  b: Blocked,
  c: Blocked,
  size: number,
): void {
  for (let i = 0; i < a.length; i++) {
    for (let j = 0; j < a.length; j++) {
      for (let k = 0; k < a.length; k++) kernel(at(a, i, k), at(b, k, j), at(c, i, j), size)
    }
  }
}

/** a = l * lᵀ, l in place of the lower half of a. */
function cholesky(kernels: Kernels, a: Blocked, size: number): void {
  for (let k = 0; k < a.length; k++) {
    kernels.factor(at(a, k, k), size)
    for (let i = k + 1; i < a.length; i++) kernels.solve(at(a, k, k), at(a, i, k), size)
    for (let i = k + 1; i < a.length; i++) {
      for (let j = k + 1; j <= i; j++) kernels.update(at(a, i, k), at(a, j, k), at(a, i, j), size)
    }
  }
}

const at = (matrix: Blocked, i: number, j: number): Float64Array => matrix[i]?.[j] as Float64Array

function blocks(count: number, size: number, value: (i: number, j: number) => number): Blocked {
  return Array.from({ length: count }, (_, i) =>
    Array.from({ length: count }, (__, j) => {
      const block = shared(Float64Array, size * size)
      for (let r = 0; r < size; r++) {
        for (let c = 0; c < size; c++) block[r * size + c] = value(i * size + r, j * size + c)
      }
      return block
    }),
  )
}

async function timed(what: string, body: () => unknown): Promise<number> {
  const start = performance.now()
  await body()
  const seconds = (performance.now() - start) / 1000
  console.log(`  ${what.padEnd(12)} ${seconds.toFixed(2)} s`)
  return seconds
}

main(async () => {
  const [n = 1024, size = 128] = process.argv.slice(2).map(Number)
  const count = Math.floor(n / size)
  if (!(count >= 1))
    throw new Error(`usage: demo.ts [N] [BLOCK], with N at least BLOCK; got ${n} and ${size}`)
  const random = pseudoRandom(42)
  const a = blocks(count, size, random)
  const b = blocks(count, size, random)

  console.log(`Matrix multiplication, ${n} x ${n} in blocks of ${size} (${count ** 3} tasks)`)
  const expected = blocks(count, size, () => 0)
  const product = blocks(count, size, () => 0)
  const one = await timed('sequential', () => multiplyBlocks(sequential, a, b, expected, size))
  const all = await timed('Millrace', async () => {
    multiplyBlocks(parallel, a, b, product, size)
    await waitOn(product)
  })
  report(one / all, difference(expected, product))

  console.log(`Cholesky factorization, ${n} x ${n}`)
  const diagonal = (i: number, j: number): number => (i === j ? n : 1 / (1 + Math.abs(i - j)))
  const original = blocks(count, size, diagonal)
  const known = blocks(count, size, diagonal)
  const factored = blocks(count, size, diagonal)
  const oneFactor = await timed('sequential', () => cholesky(sequential, known, size))
  const allFactor = await timed('Millrace', async () => {
    cholesky(parallel, factored, size)
    await waitOn(factored)
  })
  report(oneFactor / allFactor, residual(original, factored, size))
  await byLibrary(n, size)
})

/** The same by the kernels of `millrace/linalg`: OpenBLAS where it is installed. */
async function byLibrary(n: number, size: number): Promise<void> {
  const { name, gemm: kernel } = await prepareKernels()
  console.log(`The same by the kernels of ${name}`)
  const random = pseudoRandom(42)
  const [x, y, z] = [0, 1, 2].map(() => new Float64Array(256 * 256).map(random)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ]
  const began = performance.now()
  for (let i = 0; i < 8; i++) kernel({ m: 256, n: 256, k: 256, a: x, b: y, c: z })
  const peak = (8 * 2 * 256 ** 3) / (performance.now() - began) / 1e6
  const a = BlockMatrix.from(n, n, size, random)
  const product = new BlockMatrix(n, n, size)
  const s = BlockMatrix.from(n, n, size, (i, j) => (i === j ? n : 1 / (1 + Math.abs(i - j))))
  const multiplied = await timed('product', () => {
    matmul(a, a, product)
    return finished(product)
  })
  const factored = await timed('Cholesky', () => {
    tiled(s)
    return finished(s)
  })
  const speed = (operations: number, seconds: number): string => (operations / seconds / 1e9).toFixed(1)
  console.log(`  one thread   ${peak.toFixed(1)} GFLOP/s in one block`)
  console.log(`  all CPUs     ${speed(2 * n ** 3, multiplied)} and ${speed(n ** 3 / 3, factored)} GFLOP/s`)
}

function report(speedUp: number, error: number): void {
  console.log(`  speed-up     ${speedUp.toFixed(2)}    largest relative error ${error.toExponential(1)}`)
  if (!(error < 1e-10)) throw new Error('the results differ')
}

/** How far l * lᵀ is from the matrix that was factored. */
function residual(original: Blocked, factored: Blocked, size: number): number {
  const back = blocks(original.length, size, () => 0)
  for (let i = 0; i < original.length; i++) {
    for (let j = 0; j <= i; j++) {
      for (let k = 0; k <= j; k++)
        gemmTransposed(at(factored, i, k), at(factored, j, k), at(back, i, j), size)
      const block = at(back, i, j)
      block.forEach((value, index) => (block[index] = -value))
      if (i !== j) {
        for (let r = 0; r < size; r++) {
          for (let c = 0; c < size; c++) at(back, j, i)[c * size + r] = block[r * size + c] as number
        }
      }
    }
  }
  return difference(original, back)
}
