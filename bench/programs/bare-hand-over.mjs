// 100 MB from one thread straight to another through a port: bare-hand-over.mjs shared|transfer|clone
import { MessageChannel, Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { LENGTH, check, clock, fill } from './clock.mjs'

const REPETITIONS = 15

function produce({ port, how }) {
  const memory = how === 'shared' ? new Float64Array(new SharedArrayBuffer(LENGTH * 8)) : null
  parentPort.on('message', mark => {
    const array = memory ?? new Float64Array(LENGTH)
    fill(array, mark)
    port.postMessage({ array, mark, ended: clock() }, how === 'transfer' ? [array.buffer] : [])
  })
}

function consume({ port }) {
  port.on('message', ({ array, mark, ended }) => {
    const begun = clock()
    check(array, mark)
    parentPort.postMessage(begun - ended)
  })
}

if (isMainThread) {
  const how = process.argv[2]
  const { port1, port2 } = new MessageChannel()
  const start = (role, port) =>
    new Worker(new URL(import.meta.url), { workerData: { role, port, how }, transferList: [port] })
  const producer = start('produce', port1)
  const consumer = start('consume', port2)
  const handOver = []
  for (let mark = 0; mark < REPETITIONS; mark++) {
    producer.postMessage(mark)
    handOver.push(await new Promise(resolve => consumer.once('message', resolve)))
  }
  console.log(JSON.stringify({ handOver }))
  await Promise.all([producer.terminate(), consumer.terminate()])
} else if (workerData.role === 'produce') produce(workerData)
else consume(workerData)
