// piscina-flat.mjs TASKS warm|cold CONCURRENT-TASKS-PER-WORKER
import { Piscina } from 'piscina'
import { warmUp } from './warm-up.mjs'

const [tasks, , concurrentTasksPerWorker] = process.argv.slice(2).map(Number)
const pool = new Piscina({
  filename: new URL('./piscina-echo.mjs', import.meta.url).href,
  minThreads: 2,
  maxThreads: 2,
  concurrentTasksPerWorker,
})

async function round(count) {
  const promises = []
  for (let i = 0; i < count; i++) promises.push(pool.run(i))
  const last = (await Promise.all(promises)).at(-1)
  if (last !== count - 1) throw new Error(`the last task gave ${last}`)
}

await round(warmUp(tasks))
const start = performance.now()
await round(tasks)
console.log(JSON.stringify({ seconds: (performance.now() - start) / 1000 }))
await pool.destroy()
