/**
 * A product and a Cholesky factor of matrices whose blocks are made by tasks, spread over the nodes in turn. What follows runs where the
 * blocks are: `millrace run examples/linalg/spread.ts --nodes local:2x1 -- 1024 128`. With SPREAD_SEQUENTIAL=1, a plain loop.
 */
import { main, task, usePolicy, waitOn } from 'millrace'
import type { Future } from 'millrace'
import { kernels, prepareKernels } from 'millrace/linalg'
import { roundRobin } from './round-robin.ts'
import { factor, multiply, solve } from './tasks.ts'

const n = Number(process.argv[2] ?? process.env['SPREAD_N'] ?? 256)
const size = Number(process.argv[3] ?? process.env['SPREAD_BLOCK'] ?? 64)
const blocks = Math.ceil(n / size)
const side = (i: number): number => Math.min(size, n - i * size)

/** A number between -1 and 1 for each place: the same on each node. */
function element(seed: number, i: number, j: number): number {
  let x = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(j + 1, 0x85ebca6b) ^ seed
  x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d)
  x = Math.imul(x ^ (x >>> 12), 0x297a2d39)
  return ((x ^ (x >>> 15)) >>> 0) / 2 ** 31 - 1
}

/** What a matrix is made of: any numbers, zeros, or a matrix that has a Cholesky factor. */
type Sort = 'any' | 'zero' | 'definite'

function fillBlock(sort: Sort, seed: number, bi: number, bj: number): Float64Array {
  const [m, k] = [side(bi), side(bj)]
  const block = new Float64Array(m * k)
  if (sort === 'zero') return block
  for (let j = 0; j < k; j++) {
    for (let i = 0; i < m; i++) {
      const [row, column] = [bi * size + i, bj * size + j]
      const [p, q] = sort === 'any' ? [row, column] : [Math.max(row, column), Math.min(row, column)]
      block[i + j * m] = element(seed, p, q) + (sort === 'definite' && row === column ? 2 * n : 0)
    }
  }
  return block
}

export const initialise = task({ name: 'initialise' }, fillBlock)

/** A sum that depends on each place. */
const digestOf = (block: Float64Array): number => block.reduce((sum, x, at) => sum + x * (1 + (at % 97)), 0)

export const digest = task({ name: 'digest' }, digestOf)

type Grid<Block> = Block[][]

const grid = <Block>(make: (i: number, j: number) => Block): Grid<Block> =>
  Array.from({ length: blocks }, (_, i) => Array.from({ length: blocks }, (__, j) => make(i, j)))

const at = <Block>(of: Grid<Block>, i: number, j: number): Block => of[i]?.[j] as Block

/** The operations on blocks: tasks, or plain calls. */
interface Operations<Block, Sum> {
  initialise(sort: Sort, seed: number, i: number, j: number): Block
  multiply(
    a: Block,
    b: Block,
    c: Block,
    how: string,
    m: number,
    k: number,
    inner: number,
    alpha: number,
  ): void
  factor(a: Block, k: number, from: number): void
  solve(t: Block, b: Block, m: number, k: number): void
  digest(block: Block): Sum
}

const calls: Operations<Future<Float64Array>, Future<number>> = {
  initialise,
  multiply: (a, b, c, how, m, k, inner, alpha) => void multiply(a, b, c, how, m, k, inner, alpha, 0),
  factor: (a, k, from) => void factor(a, k, from, 2),
  solve: (t, b, m, k) => void solve(t, b, 'R', 'LT', m, k, 1),
  digest,
}

const plain: Operations<Float64Array, number> = {
  initialise: fillBlock,
  multiply: (a, b, c, how, m, k, inner, alpha) =>
    kernels().gemm({ m, n: k, k: inner, alpha, a, b, c, transposeB: how[1] === 'T' }),
  factor: (a, k) => void kernels().potrf(k, a),
  solve: (t, b, m, k) => kernels().trsm('R', { half: 'L', transposed: true, isUnit: false }, m, k, t, b),
  digest: digestOf,
}

/** One program for both: it reads as a sequence, and the tasks of it run wherever their blocks are. */
function compute<Block, Sum>(on: Operations<Block, Sum>): { product: Sum[]; factor: Sum[] } {
  const [a, b] = [1, 2].map(seed => grid((i, j) => on.initialise('any', seed, i, j))) as [
    Grid<Block>,
    Grid<Block>,
  ]
  const c = grid((i, j) => on.initialise('zero', 0, i, j))
  const l = grid((i, j) => on.initialise('definite', 3, i, j))
  for (let k = 0; k < blocks; k++) {
    for (let j = 0; j < blocks; j++) {
      for (let i = 0; i < blocks; i++)
        on.multiply(at(a, i, k), at(b, k, j), at(c, i, j), 'NN', side(i), side(j), side(k), 1)
    }
  }
  for (let k = 0; k < blocks; k++) {
    on.factor(at(l, k, k), side(k), k * size)
    for (let i = k + 1; i < blocks; i++) on.solve(at(l, k, k), at(l, i, k), side(i), side(k))
    for (let j = k + 1; j < blocks; j++) {
      for (let i = j; i < blocks; i++)
        on.multiply(at(l, i, k), at(l, j, k), at(l, i, j), 'NT', side(i), side(j), side(k), -1)
    }
  }
  const lower = l.flatMap((row, i) => row.slice(0, i + 1))
  return { product: c.flat().map(block => on.digest(block)), factor: lower.map(block => on.digest(block)) }
}

usePolicy(roundRobin)

main(async () => {
  await prepareKernels()
  const began = performance.now()
  const sums = process.env['SPREAD_SEQUENTIAL'] === '1' ? compute(plain) : await waitOn(compute(calls))
  const seconds = (performance.now() - began) / 1000
  console.log(JSON.stringify({ seconds, ...sums }))
})
