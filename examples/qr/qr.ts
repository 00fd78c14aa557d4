/**
 * QR of a matrix in blocks that are zero, the identity, or data: only data take memory. Tasks make the blocks, row by row.
 *
 *     npx millrace run examples/qr/qr.ts
 *
 * QR_BLOCKS=6      blocks in a row
 * QR_SIZE=48       rows of a block
 * QR_SEQUENTIAL=1  a plain loop instead, without tasks
 */
import { main, task, waitOn } from 'millrace'
import type { Future } from 'millrace'
import {
  IDENTITY,
  ZERO,
  add,
  factorOne,
  factorTwo,
  makeBlock,
  multiply,
  transpose,
  valuesOf,
} from './blocks.ts'
import type { Block } from './blocks.ts'

const BLOCKS = Number(process.env['QR_BLOCKS'] ?? 6)
const SIZE = Number(process.env['QR_SIZE'] ?? 48)
const { QR_SEQUENTIAL: SEQUENTIAL = '' } = process.env

type Given = Block | Future<Block>
/** What the algorithm does with blocks: at once, or by tasks. */
interface Steps<B> {
  make(row: number, column: number): B
  one(block: B): [B, B]
  two(above: B, below: B): [B, B, B, B, B]
  /** a b + c d */
  product(a: B, b: B, c: B, d: B): B
  transposed(block: B): B
}

const sum = (a: Block, b: Block, c: Block, d: Block): Block => add(multiply(a, b, SIZE), multiply(c, d, SIZE))

const plain: Steps<Block> = {
  make: (row, column) => makeBlock(row, column, BLOCKS, SIZE),
  one: block => factorOne(block, SIZE),
  two: (above, below) => factorTwo(above, below, SIZE),
  product: sum,
  transposed: block => transpose(block, SIZE),
}

export const makeOne = task({ name: 'make' }, (row: number, column: number) => plain.make(row, column))
export const one = task({ name: 'qr', returns: 2, priority: 2 }, (block: Block) => plain.one(block))
export const two = task({ name: 'qr2', returns: 5, priority: 2 }, (above: Block, below: Block) =>
  plain.two(above, below),
)
export const product = task({ name: 'product' }, sum)
export const transposed = task({ name: 'transposed', priority: 1 }, (block: Block) => plain.transposed(block))

const tasks: Steps<Given> = { make: makeOne, one, two, product, transposed } as Steps<Given>

/** Q R = A: R takes the place of A, and Q begins as the identity, which takes no memory. */
function decompose<B>(steps: Steps<B>, zero: B, identity: B): { q: B[][]; r: B[][] } {
  const numbers = Array.from({ length: BLOCKS }, (_, i) => i)
  const r = numbers.map(i => numbers.map(j => steps.make(i, j)))
  const q = numbers.map(i => numbers.map(j => (i === j ? identity : zero)))
  for (const k of numbers) {
    const [qk, rk] = steps.one(r[k]![k]!)
    const back = steps.transposed(qk)
    for (const row of q) row[k] = steps.product(row[k]!, qk, zero, zero)
    for (const j of numbers.slice(k + 1)) r[k]![j] = steps.product(back, r[k]![j]!, zero, zero)
    r[k]![k] = rk
    for (const i of numbers.slice(k + 1)) {
      const [q00, q01, q10, q11, above] = steps.two(r[k]![k]!, r[i]![k]!)
      const [t00, t01, t10, t11] = [q00, q10, q01, q11].map(block => steps.transposed(block)) as [B, B, B, B]
      r[k]![k] = above
      r[i]![k] = zero
      for (const j of numbers.slice(k + 1)) {
        const [upper, lower] = [r[k]![j]!, r[i]![j]!]
        r[k]![j] = steps.product(t00, upper, t01, lower)
        r[i]![j] = steps.product(t10, upper, t11, lower)
      }
      for (const row of q) {
        const [left, right] = [row[k]!, row[i]!]
        row[k] = steps.product(left, q00, right, q10)
        row[i] = steps.product(left, q01, right, q11)
      }
    }
  }
  return { q, r }
}

/** The largest element of Q R - A, and of Q'Q - 1. */
function errorsOf(q: Block[][], r: Block[][]): { product: number; orthogonal: number } {
  let [product, orthogonal] = [0, 0]
  for (let i = 0; i < BLOCKS; i++) {
    for (let j = 0; j < BLOCKS; j++) {
      let [qr, qq] = [ZERO, ZERO]
      for (let k = 0; k < BLOCKS; k++) {
        qr = add(qr, multiply(q[i]![k]!, r[k]![j]!, SIZE))
        qq = add(qq, multiply(transpose(q[k]![i]!, SIZE), q[k]![j]!, SIZE))
      }
      product = Math.max(product, distance(qr, plain.make(i, j)))
      orthogonal = Math.max(orthogonal, distance(qq, i === j ? IDENTITY : ZERO))
    }
  }
  return { product, orthogonal }
}

function distance(a: Block, b: Block): number {
  const other = valuesOf(b, SIZE)
  return valuesOf(a, SIZE).reduce((most, value, i) => Math.max(most, Math.abs(value - (other[i] ?? 0))), 0)
}

main(async () => {
  const start = performance.now()
  const { q, r } = SEQUENTIAL
    ? decompose(plain, ZERO, IDENTITY)
    : ((await waitOn(decompose(tasks, ZERO, IDENTITY))) as { q: Block[][]; r: Block[][] })
  const seconds = (performance.now() - start) / 1000
  const all = [...q, ...r].flat()
  const total = valuesOf(r[0]![0]!, SIZE).reduce((sum, value) => sum + value, 0)
  const inData = all.filter(({ type }) => type === 'data').length
  console.log(JSON.stringify({ ...errorsOf(q, r), total, inData, blocks: all.length, seconds }))
})
