import { Worker } from 'node:worker_threads'

const ROUNDS = 50_000_000

/** As often as it takes for the code to be compiled, and once more with a clock. */
const PROGRAM = `
  const { parentPort, workerData } = require('node:worker_threads')
  import(workerData.module).then(({ arithmetic }) => {
    for (let i = 0; i < 100; i++) arithmetic(i, workerData.rounds / 100)
    const began = performance.now()
    arithmetic(7, 2 * workerData.rounds)
    parentPort.postMessage((2 * workerData.rounds) / (performance.now() - began))
  })`

/** Rounds of bench/programs/arithmetic.mjs that each of two threads does in a second while the other does too. */
export async function roundsPerSecond(): Promise<number> {
  const module = new URL('../programs/arithmetic.mjs', import.meta.url).href
  const one = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(PROGRAM, { eval: true, execArgv: [], workerData: { module, rounds: ROUNDS } })
      worker.once('message', resolve)
      worker.once('error', reject)
    })
  const [first, second] = await Promise.all([one(), one()])
  return ((first + second) / 2) * 1000
}
