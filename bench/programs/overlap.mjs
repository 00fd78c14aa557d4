// overlap.mjs MODE FOLDER TASKS ROUNDS BYTES BANDWIDTH LIMIT: tasks compute, and checkpoint what they made. MODE is io
// (checkpoints are I/O tasks) or plain (they are tasks like the others). Prints the seconds in all, and the mean
// milliseconds of a task that computes.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { FILE_OUT, IN, barrier, configure, main, task, waitOn } from 'millrace'

process.env['BENCH_IO'] ??= process.argv.slice(2).join(' ')
const [mode, folder, tasks, rounds, bytes, bandwidth, limit] = process.env['BENCH_IO'].split(' ')

const ROUNDS = Number(rounds)

/** Arithmetic for a CPU, and data that follow from its result, so that they can be checked. */
export const compute = task({ name: 'compute', returns: 2 }, n => {
  const began = performance.now()
  let state = n + 1
  for (let i = 0; i < ROUNDS; i++) state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
  const data = new Uint8Array(Number(bytes)).fill(state & 255)
  return [data, { state, milliseconds: performance.now() - began }]
})

export const checkpoint = task(
  {
    name: 'checkpoint',
    params: [IN, FILE_OUT],
    ...(mode === 'io' ? { io: true, bandwidth: Number(limit), size: Number(bytes) } : {}),
  },
  async (data, path) => {
    const file = await open(path, 'w')
    try {
      await file.write(data)
      await file.sync()
    } finally {
      await file.close()
    }
  },
)

main(async () => {
  await barrier()
  const began = performance.now()
  const times = []
  const made = []
  for (let i = 0; i < Number(tasks); i++) {
    const [data, took] = compute(i)
    checkpoint(data, join(folder, `${i}.bin`))
    times.push(took)
    made.push(join(folder, `${i}.bin`))
  }
  await barrier()
  const seconds = (performance.now() - began) / 1000
  const results = await waitOn(times)
  const milliseconds = results.reduce((sum, one) => sum + one.milliseconds, 0) / results.length
  for (const [i, path] of made.entries()) {
    const data = readFileSync(path)
    const expected = Buffer.alloc(Number(bytes), results[i].state & 255)
    if (!data.equals(expected)) {
      throw new Error(`${path} is not what was computed`)
    }
    rmSync(path)
  }
  console.log(JSON.stringify({ seconds, milliseconds }))
})

if (isMainThread) {
  const file = join(process.cwd(), 'machine.json')
  const storage = [{ name: 'slow', path: folder, bandwidth: `${bandwidth}MB/s` }]
  writeFileSync(file, JSON.stringify({ nodes: [{ storage }] }))
  configure({ machine: file, ioExecutors: 64, flush: 'off' })
}
