// overlap.mjs LIMIT FOLDER TASKS ROUNDS BYTES BANDWIDTH: tasks compute, and checkpoint what they made. LIMIT is plain
// (checkpoints are tasks like the others), or they are I/O tasks: N at a time, adaptive, or unlimited. Prints the
// seconds in all, and the mean milliseconds of a task that computes: from begin to end, those for which it had a CPU, and
// those for which it waited for one, by the kernel's own account of its thread.
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
  const before = account()
  const state = arithmetic(n, times)
  const after = account()
  const took = Object.fromEntries(Object.entries(after).map(([name, at]) => [name, at - before[name]]))
  return [new Uint8Array(Number(bytes)).fill(state & 255), { state, ...took }]
})

/** Milliseconds up to now of this thread. */
function account() {
  const [running, waiting] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')
  return { milliseconds: performance.now(), running: Number(running) / 1e6, waiting: Number(waiting) / 1e6 }
}

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
  const mean = name => results.reduce((sum, one) => sum + one[name], 0) / results.length
  for (const [i, path] of paths.entries()) {
    const expected = Buffer.alloc(Number(bytes), results[i].state & 255)
    if (!readFileSync(path).equals(expected)) throw new Error(`${path} is not what was computed`)
  }
  const [milliseconds, running, waiting] = ['milliseconds', 'running', 'waiting'].map(mean)
  console.log(JSON.stringify({ seconds, milliseconds, running, waiting }))
})

if (isMainThread) {
  const file = join(process.cwd(), 'machine.json')
  const storage = [{ name: 'slow', path: folder, bandwidth: `${bandwidth}MB/s` }]
  writeFileSync(file, JSON.stringify({ nodes: [{ storage }] }))
  configure({ machine: file, ioExecutors: 64, flush: 'off' })
}
