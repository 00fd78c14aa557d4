import type { Socket } from 'node:net'
import type { MessagePort } from 'node:worker_threads'
import { Listener } from '../coordinator/listener.ts'
import { FROM_AGENT, TO_AGENT } from '../link/frame-types.ts'
import { FrameSplitter, FrameWriter } from '../link/frames.ts'
import { CoordinatorLease } from './lease.ts'
import type { Health, LeaseTimes } from './lease.ts'

export interface AnswerOptions {
  readonly token: string
  /** The folder of the sockets. */
  readonly folder: string
  /** Agents call over the network, too. */
  readonly isFar: boolean
  readonly times: LeaseTimes
}

/** What the thread says. */
export type LeaseNews =
  | { readonly type: 'listening'; readonly here: string; readonly far: readonly string[] }
  /** The agent has called for its lease. */
  | { readonly type: 'called'; readonly node: number }
  | { readonly type: 'health'; readonly node: number; readonly health: Health }
  | { readonly type: 'closed'; readonly node: number }

/** What it is asked: the node is lost, for whatever reason, and gets no answer any more; or no more agents call. */
export type LeaseOrder = { readonly type: 'lost'; readonly node: number } | { readonly type: 'close' }

const LOOK = 250
/** Bytes of an answer: a thousand agents get as many each second. */
const SMALL = 16
/** After this long without a check, this process stood still, and not the agents. */
const PAUSED = 3000

interface Held {
  readonly socket: Socket
  lease: CoordinatorLease
  told: Health
}

/** The coordinator's side, in its own thread: it answers, and tells the main thread whose health has changed. */
export async function answerLeases(options: AnswerOptions, port: MessagePort): Promise<void> {
  const held = new Map<number, Held>()
  const say = (news: LeaseNews): void => port.postMessage(news)
  const tell = (node: number, one: Held, health: Health): void => {
    if (one.told === health) return
    one.told = health
    say({ type: 'health', node, health })
  }

  const listener = new Listener(
    ({ node, channel }, socket, rest) => {
      if (channel !== 'lease' || held.has(node)) return void socket.destroy()
      const one: Held = {
        socket,
        lease: new CoordinatorLease(0, performance.now(), options.times),
        told: 'alive',
      }
      held.set(node, one)
      const splitter = new FrameSplitter()
      const take = (chunk: Buffer): void => {
        try {
          splitter.push(chunk, (type, content) => {
            if (type !== FROM_AGENT.ask) return
            const answer = one.lease.asked(0, content.varint(), performance.now())
            tell(node, one, one.lease.health)
            if (answer === null) return
            const writer = new FrameWriter(SMALL)
            writer.begin(TO_AGENT.renewed)
            writer.varint(answer)
            writer.end()
            socket.write(writer.take())
          })
        } catch {
          socket.destroy()
        }
      }
      socket.on('data', take)
      socket.on('close', () => say({ type: 'closed', node }))
      say({ type: 'called', node })
      if (rest.length > 0) take(rest)
    },
    { token: options.token, folder: options.folder },
  )
  const here = await listener.listenHere('leases')
  const far = options.isFar ? await listener.listenOnNetwork() : []
  say({ type: 'listening', here, far })

  let lookedAt = performance.now()
  setInterval(() => {
    const now = performance.now()
    const wasPaused = now - lookedAt > PAUSED
    lookedAt = now
    for (const [node, one] of held) {
      if (wasPaused && one.lease.health !== 'dead') one.lease = new CoordinatorLease(0, now, options.times)
      tell(node, one, one.lease.tick(now))
    }
  }, LOOK)
  port.on('message', (order: LeaseOrder) => {
    if (order.type === 'close') return listener.close()
    const one = held.get(order.node)
    one?.lease.lost()
    one?.socket.destroy()
  })
}
