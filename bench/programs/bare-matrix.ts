// The ceiling of the speed-up: each of two threads computes half of the rows of blocks, in shared memory,
// without any tasks. bare-matrix.ts SIZE BLOCK
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { makeBlocks } from './kernel.ts'
import type { Blocks } from './kernel.ts'
import { computeRows } from './rows.ts'

const ROUNDS = 20
const THREADS = 2

interface Work {
  a: Blocks
  b: Blocks
  c: Blocks
}

function serve(first: number): void {
  parentPort?.on('message', ({ a, b, c }: Work) => {
    computeRows(a, b, c, first, THREADS)
    parentPort?.postMessage('done')
  })
}

async function measure(): Promise<void> {
  const [size = 0, block = 0] = process.argv.slice(2, 4).map(Number)
  const count = size / block
  const create = (length: number): Float64Array => new Float64Array(new SharedArrayBuffer(length * 8))
  const threads = Array.from(
    { length: THREADS },
    (_, first) => new Worker(new URL('./bare-matrix-thread.mjs', import.meta.url), { workerData: { first } }),
  )
  const answer = (thread: Worker): Promise<unknown> => new Promise(resolve => thread.once('message', resolve))
  const sequential: number[] = []
  const parallel: number[] = []
  const work = (): Work => ({
    a: makeBlocks(count, block, 1, create),
    b: makeBlocks(count, block, 2, create),
    c: makeBlocks(count, block, 0, create),
  })
  const [alone, together] = [work(), work()]
  for (let round = 0; round < ROUNDS + 1; round++) {
    for (const one of [...alone.c.flat(), ...together.c.flat()]) one.fill(0)
    const start = performance.now()
    computeRows(alone.a, alone.b, alone.c, 0, 1)
    const middle = performance.now()
    for (const thread of threads) thread.postMessage(together)
    await Promise.all(threads.map(answer))
    const end = performance.now()
    if (round === 0) continue
    sequential.push((middle - start) / 1000)
    parallel.push((end - middle) / 1000)
  }
  console.log(JSON.stringify({ sequential, parallel }))
  for (const thread of threads) await thread.terminate()
}

if (isMainThread) void measure()
else serve((workerData as { first: number }).first)
