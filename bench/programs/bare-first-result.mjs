// The floor of a program's first result: one thread, one message.
import { Worker, isMainThread, parentPort } from 'node:worker_threads'

if (isMainThread) {
  const thread = new Worker(new URL(import.meta.url))
  thread.once('message', message => {
    console.log(message)
    void thread.terminate()
  })
} else parentPort.postMessage('first')
