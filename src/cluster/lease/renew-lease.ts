import type { MessagePort } from 'node:worker_threads'
import { callForLease } from '../agent/call.ts'
import type { CallOptions } from '../agent/call.ts'
import { monotonic } from '../link/machine-clock.ts'
import { FROM_AGENT, TO_AGENT } from '../link/frame-types.ts'
import { FrameSplitter, FrameWriter } from '../link/frames.ts'
import { AgentLease } from './lease.ts'
import type { LeaseTimes } from './lease.ts'

export interface RenewOptions {
  readonly call: CallOptions
  readonly times: LeaseTimes
  /** Where it says until when the lease lasts, on the clock of the machine, so that the main thread knows. */
  readonly lasts: Float64Array
}

/** What the thread says: it has called, or the agent has to end. */
export type RenewNews = { readonly type: 'called' } | { readonly type: 'over'; readonly reason: string }

/** Between two looks at the clock; milliseconds. */
const LOOK = 100
/** The agent gets this long to end by itself; then its process is killed, and the watchdog cleans up. Milliseconds. */
const END_GRACE = 1000

/** The agent's side, in its own thread: it asks, and ends the process when there is no answer. */
export async function renewLease({ call, times, lasts }: RenewOptions, port: MessagePort): Promise<void> {
  const say = (news: RenewNews): void => port.postMessage(news)
  let isOver = false
  const over = (reason: string): void => {
    if (isOver) return
    isOver = true
    say({ type: 'over', reason })
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), END_GRACE)
  }
  let socket
  try {
    socket = await callForLease(call)
  } catch (error) {
    return over((error as Error).message)
  }
  say({ type: 'called' })
  const lease = new AgentLease(performance.now(), times)
  const tell = (): void => {
    lasts[0] = monotonic() - performance.now() + lease.lasts
  }
  tell()
  const splitter = new FrameSplitter()
  socket.on('data', chunk => {
    try {
      splitter.push(chunk, (type, content) => {
        if (type === TO_AGENT.renewed) lease.answered(content.varint())
      })
      tell()
    } catch {
      over('the coordinator said something that cannot be read')
    }
  })
  socket.on('error', () => undefined)
  socket.on('close', () => over('the coordinator is gone'))
  setInterval(() => {
    const action = lease.tick(performance.now())
    if (action === 'end') return over('it had no answer from the coordinator')
    if (!action) return
    const writer = new FrameWriter()
    writer.begin(FROM_AGENT.ask)
    writer.varint(action.ask)
    writer.end()
    socket.write(writer.take())
  }, LOOK)
}
