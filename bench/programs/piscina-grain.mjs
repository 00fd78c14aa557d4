// piscina-grain.mjs MILLISECONDS CONCURRENT-TASKS-PER-WORKER
import { Piscina } from 'piscina'
import { speedUps } from './grain-work.mjs'

const [milliseconds, concurrentTasksPerWorker] = process.argv.slice(2).map(Number)
const pool = new Piscina({
  filename: new URL('./piscina-work.mjs', import.meta.url).href,
  minThreads: 2,
  maxThreads: 2,
  concurrentTasksPerWorker,
})
await speedUps(milliseconds, async (tasks, steps) => {
  const promises = []
  for (let i = 0; i < tasks; i++) promises.push(pool.run(steps))
  await Promise.all(promises)
})
await pool.destroy()
