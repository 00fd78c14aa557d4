// overlap.mjs LIMIT FOLDER TASKS ROUNDS BYTES BANDWIDTH: tasks compute, and checkpoint what they made. LIMIT is plain
// (checkpoints are tasks like the others), or they are I/O tasks: so many at a time, adaptive, or unlimited. Prints the
// seconds in all, and the mean milliseconds of a task that computes.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { FILE_OUT, IN, barrier, configure, main, task, waitOn } from 'millrace'
import { arithmetic } from './arithmetic.mjs'
import { writeSynced } from './write-synced.mjs'

// By the environment, because threads load this module too and see no arguments.
process.env['BENCH_IO'] ??= process.argv.slice(2).join(' ')
const [limit, folder, tasks, rounds, bytes, bandwidth] = process.env['BENCH_IO'].split(' ')

/** What is computed decides what is written, so that it can be checked. */
export const compute = task({ name: 'compute', returns: 2 }, (n, times) => {
  const began = performance.now()
  const state = arithmetic(n, times)
  const milliseconds = performance.now() - began
  return [new Uint8Array(Number(bytes)).fill(state & 255), { state, milliseconds }]
})

const asked = { adaptive: { bandwidth: 'adaptive' }, unlimited: {} }[limit] ?? {
  bandwidth: Number(bandwidth) / Number(limit),
}

export const checkpoint = task(
  {
    name: 'checkpoint',
    params: [IN, FILE_OUT],
    ...(limit === 'plain' ? {} : { io: true, size: Number(bytes), ...asked }),
  },
  writeSynced,
)

main(async () => {
  // All threads are there, and their code is compiled, before the clock starts.
  for (let n = 0; n < 4; n++) {
    const [data] = compute(n, 30_000_000)
    checkpoint(data, join(folder, `warm${n}.bin`))
  }
  await barrier()
  const began = performance.now()
  const computed = []
  const paths = []
  for (let i = 0; i < Number(tasks); i++) {
    const [data, result] = compute(i, Number(rounds))
    paths.push(join(folder, `${i}.bin`))
    checkpoint(data, paths[i])
    computed.push(result)
  }
  await barrier()
  const seconds = (performance.now() - began) / 1000
  const results = await waitOn(computed)
  const milliseconds = results.reduce((sum, one) => sum + one.milliseconds, 0) / results.length
  for (const [i, path] of paths.entries()) {
    const expected = Buffer.alloc(Number(bytes), results[i].state & 255)
    if (!readFileSync(path).equals(expected)) throw new Error(`${path} is not what was computed`)
  }
  console.log(JSON.stringify({ seconds, milliseconds }))
})

if (isMainThread) {
  const file = join(process.cwd(), 'machine.json')
  const storage = [{ name: 'slow', path: folder, bandwidth: `${bandwidth}MB/s` }]
  writeFileSync(file, JSON.stringify({ nodes: [{ storage }] }))
  configure({ machine: file, ioExecutors: 64, flush: 'off' })
}
