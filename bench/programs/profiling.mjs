// Profiles the coordinator and the threads between two calls of a program, when MILLRACE_BENCH_PROFILE names
// a folder. Millrace starts threads with options of its own, so `node --cpu-prof` would see the coordinator
// only, and all of its life instead of the part that is timed.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads'

const folder = process.env.MILLRACE_BENCH_PROFILE
const THREADS = 2
let session = null

const ask = (method, parameters = {}) =>
  new Promise((resolve, reject) =>
    session.post(method, parameters, (error, answer) => (error ? reject(error) : resolve(answer))),
  )

async function start() {
  const { Session } = await import('node:inspector')
  session = new Session()
  session.connect()
  await ask('Profiler.enable')
  await ask('Profiler.setSamplingInterval', { interval: 200 })
  await ask('Profiler.start')
}

async function stop() {
  const { profile } = await ask('Profiler.stop')
  writeFileSync(
    join(folder, `${isMainThread ? 'coordinator' : `thread-${threadId}`}.cpuprofile`),
    JSON.stringify(profile),
  )
}

const channel = folder ? new BroadcastChannel('millrace-bench-profile') : null
if (channel && !isMainThread) {
  channel.onmessage = async ({ data }) => {
    if (data === 'start') await start()
    else if (data === 'stop') await stop()
    else return
    channel.postMessage('done')
  }
  channel.unref()
}

/** Tells all threads and waits until each has answered. */
function tell(what) {
  return new Promise(resolve => {
    let answers = 0
    channel.onmessage = ({ data }) => {
      if (data === 'done' && ++answers === THREADS) resolve()
    }
    channel.postMessage(what)
  })
}

export async function profileStart() {
  if (!channel) return
  await tell('start')
  await start()
}

export async function profileStop() {
  if (!channel) return
  await stop()
  await tell('stop')
  channel.close()
}
