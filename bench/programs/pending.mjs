// Tasks that all wait for one input, which comes when all are there: pending.mjs TASKS REPETITIONS
import { barrier, main, shared, task, waitOn } from 'millrace'
import { profileStart, profileStop } from './profiling.mjs'

/** Blocks its thread until the program lets it go. */
export const gate = task({ name: 'gate' }, flag => {
  Atomics.wait(flag, 0, 0)
  return 1
})

export const after = task({ name: 'after' }, (open, x) => open + x)

const [tasks, repetitions] = process.argv.slice(2).map(Number)

const used = () => {
  gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function round(count, withMemory) {
  const flag = shared(Int32Array, 1)
  const futures = Array.from({ length: count }, () => null)
  const before = withMemory ? used() : 0
  const start = performance.now()
  const open = gate(flag)
  for (let i = 0; i < count; i++) futures[i] = after(open, i)
  const submitted = performance.now()
  const heap = withMemory ? (used() - before) / count : 0
  const opened = performance.now()
  Atomics.store(flag, 0, 1)
  Atomics.notify(flag, 0)
  await barrier()
  const ended = performance.now()
  const last = await waitOn(futures.at(-1))
  if (last !== count) throw new Error(`the last task gave ${last}`)
  return {
    heap,
    submission: ((submitted - start) / count) * 1000,
    completion: ((ended - opened) / count) * 1000,
  }
}

main(async () => {
  // The first tasks of a process pay for what V8 has not compiled yet, whatever their number.
  for (let i = 0; i < 3; i++) await round(10_000, false)
  const rounds = []
  await profileStart()
  for (let i = 0; i < repetitions; i++) rounds.push(await round(tasks, i === 0))
  await profileStop()
  const mean = pick => rounds.reduce((sum, one) => sum + pick(one), 0) / repetitions
  const [submission, completion] = [mean(one => one.submission), mean(one => one.completion)]
  console.log(JSON.stringify({ heap: rounds[0].heap, submission, completion }))
})
