// The floor of a chain: a number goes to a thread and comes back, each time after the time before:
// bare-ping-pong.mjs HOPS warm|cold
import { Worker, isMainThread, parentPort } from 'node:worker_threads'
import { warmUp } from './warm-up.mjs'

if (!isMainThread) {
  parentPort.on('message', x => parentPort.postMessage(x + 1))
} else {
  const hops = Number(process.argv[2])
  const thread = new Worker(new URL(import.meta.url))
  const round = count =>
    new Promise(resolve => {
      thread.removeAllListeners('message')
      thread.on('message', x => (x === count ? resolve() : thread.postMessage(x)))
      thread.postMessage(0)
    })
  await round(warmUp(hops))
  const start = performance.now()
  await round(hops)
  console.log(JSON.stringify({ seconds: (performance.now() - start) / 1000 }))
  await thread.terminate()
}
