// Tasks of about 5 ms on all CPUs for some seconds, with a journal: what a page would watch.
import { main, task, waitOn } from 'millrace'
import { arithmetic } from './arithmetic.mjs'

export const work = task({}, (seed, rounds) => arithmetic(seed, rounds))

main(async () => {
  const [tasks, rounds] = process.argv.slice(2).map(Number)
  await waitOn(work(0, rounds))
  const begun = performance.now()
  const results = []
  for (let i = 0; i < tasks; i++) results.push(work(i, rounds))
  for (const result of results) await waitOn(result)
  console.log(JSON.stringify({ seconds: (performance.now() - begun) / 1000 }))
})
