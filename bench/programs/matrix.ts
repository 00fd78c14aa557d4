// Blocked matrix multiplication, by plain calls and by tasks in turn: matrix.ts SIZE BLOCK shared|plain
import { IN, INOUT, main, shared, task, waitOn } from 'millrace'
import { compare, makeBlocks, multiplyAdd } from './kernel.ts'
import type { Blocks } from './kernel.ts'

const ROUNDS = 20

export const multiply = task({ name: 'multiply', params: [IN, IN, INOUT] }, multiplyAdd)

function all(
  a: Blocks,
  b: Blocks,
  c: Blocks,
  step: (...blocks: Parameters<typeof multiplyAdd>) => unknown,
): void {
  const count = a.length
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < count; j++) {
      for (let k = 0; k < count; k++) {
        step(a[i]?.[k] as Float64Array, b[k]?.[j] as Float64Array, c[i]?.[j] as Float64Array)
      }
    }
  }
}

main(async () => {
  const [size = 0, block = 0] = process.argv.slice(2, 4).map(Number)
  const count = size / block
  const plain = (length: number): Float64Array => new Float64Array(length)
  const create = process.argv[4] === 'shared' ? (length: number) => shared(Float64Array, length) : plain
  const sequential: number[] = []
  const parallel: number[] = []
  // Made once, so that what is measured is not how earlier rounds are collected.
  const [a, b, c] = [1, 2, 0].map(seed => makeBlocks(count, block, seed, plain)) as [Blocks, Blocks, Blocks]
  const [x, y, z] = [1, 2, 0].map(seed => makeBlocks(count, block, seed, create)) as [Blocks, Blocks, Blocks]
  for (let round = 0; round < ROUNDS + 1; round++) {
    for (const one of [...c.flat(), ...z.flat()]) one.fill(0)
    const start = performance.now()
    all(a, b, c, multiplyAdd)
    const middle = performance.now()
    const begun = performance.now()
    all(x, y, z, multiply)
    await waitOn(z)
    const end = performance.now()
    compare(c, z)
    // The first round is for V8 to compile the function, here and in the threads.
    if (round === 0) continue
    sequential.push((middle - start) / 1000)
    parallel.push((end - begun) / 1000)
  }
  console.log(JSON.stringify({ sequential, parallel }))
})
