// The floor: tasks as objects with an id and an argument, echoed by two threads over their ports in
// batches, and nothing else. bare-flat.mjs TASKS warm|cold BATCH BATCHES-IN-FLIGHT-PER-THREAD
import { Worker, isMainThread, parentPort } from 'node:worker_threads'
import { warmUp } from './warm-up.mjs'

if (!isMainThread) {
  parentPort.on('message', batch => {
    parentPort.postMessage(batch.map(({ id, argument }) => ({ id, value: argument })))
  })
} else {
  const [tasks, , size, inFlight] = process.argv.slice(2).map(Number)
  const threads = [0, 1].map(() => new Worker(new URL(import.meta.url)))

  const round = count =>
    new Promise(resolve => {
      let sent = 0
      let done = 0
      const send = thread => {
        const batch = []
        for (; batch.length < size && sent < count; sent++) batch.push({ id: sent, argument: sent })
        if (batch.length > 0) thread.postMessage(batch)
      }
      for (const thread of threads) {
        thread.removeAllListeners('message')
        thread.on('message', batch => {
          done += batch.length
          if (done === count) resolve()
          else send(thread)
        })
        for (let i = 0; i < inFlight; i++) send(thread)
      }
    })

  await round(warmUp(tasks))
  const start = performance.now()
  await round(tasks)
  console.log(JSON.stringify({ seconds: (performance.now() - start) / 1000 }))
  for (const thread of threads) await thread.terminate()
}
