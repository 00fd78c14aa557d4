// Tasks that hold a CPU for so long by the clock: spin.mjs MICROSECONDS THREADS
import { barrier, main, task } from 'millrace'

export const spin = task({ name: 'spin' }, microseconds => {
  const end = performance.now() + microseconds / 1000
  let steps = 0
  while (performance.now() < end) steps++
  return steps
})

const [microseconds, threads] = process.argv.slice(2).map(Number)
/** Seconds that each thread computes in a round. */
const SECONDS = 0.5
const ROUNDS = 3

async function round(tasks) {
  const start = performance.now()
  for (let i = 0; i < tasks; i++) spin(microseconds)
  await barrier()
  return (performance.now() - start) / 1000
}

main(async () => {
  const tasks = Math.max(4 * threads, Math.round((SECONDS * 1e6 * threads) / microseconds))
  // For V8 to compile what is called, and for the system to learn how long tasks take.
  for (let i = 0; i < 2; i++) await round(Math.round(tasks / 4))
  const ideal = (microseconds * tasks) / 1e6 / threads
  const shares = []
  for (let i = 0; i < ROUNDS; i++) shares.push(ideal / (await round(tasks)))
  console.log(JSON.stringify({ shares }))
})
