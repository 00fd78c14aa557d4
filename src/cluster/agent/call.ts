import { realpathSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { availableParallelism, hostname, tmpdir, totalmem } from 'node:os'
import { connect as connectTls } from 'node:tls'
import { MillraceError } from '../../core/errors.ts'
import { FROM_AGENT, PROTOCOL } from '../link/frame-types.ts'
import { FrameWriter } from '../link/frames.ts'
import { clientTls } from '../link/secret.ts'
import type { AgentHello } from '../link/start.ts'
import { mayStream } from '../../stream/run/toolchain.ts'
import { pack } from '../link/structured.ts'

export interface CallOptions {
  /** The path of a socket, or host:port. All of them lead to the coordinator, and some may not be reached from here. */
  readonly addresses: readonly string[]
  readonly token: string
  readonly node: number
  readonly cpus: number | null
  readonly version: string
  readonly removesSocket: boolean
  /** What its queue calls it. */
  readonly name?: string
  /** Where other agents can call it. */
  readonly peers?: readonly string[]
}

/** Milliseconds for one address. */
const ANSWER_TIMEOUT = 10_000

/** Calls the coordinator twice: for messages and for data. */
export async function callCoordinator(options: CallOptions): Promise<{ control: Socket; data: Socket }> {
  const [control, data] = await openAll(options, ['control', 'data'])
  return { control, data } as { control: Socket; data: Socket }
}

/** A third call, to where leases are renewed. */
export async function callForLease(options: CallOptions): Promise<Socket> {
  const [socket] = await openAll(options, ['lease'])
  return socket as Socket
}

async function openAll(options: CallOptions, channels: readonly AgentHello['channel'][]): Promise<Socket[]> {
  const failures: string[] = []
  for (const address of options.addresses) {
    try {
      const sockets: Socket[] = []
      for (let left = channels.length; left > 0; left--) sockets.push(await open(address, options))
      if (options.removesSocket) rmSync(address, { force: true })
      for (const [i, socket] of sockets.entries()) say(socket, channels[i] as AgentHello['channel'], options)
      return sockets
    } catch (error) {
      failures.push(`${address}: ${(error as Error).message}`)
    }
  }
  throw new MillraceError(
    'MR_NODE_UNREACHABLE',
    `${hostname()} cannot reach the coordinator: ${failures.join('; ')}`,
  )
}

function open(address: string, { token }: CallOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const [, host, port] = /^(.*):(\d+)$/.exec(address) ?? []
    const socket =
      host === undefined || address.startsWith('/')
        ? connect(address)
        : connectTls({ host, port: Number(port), ...clientTls({ token }) })
    socket.setTimeout(ANSWER_TIMEOUT, () => socket.destroy(new Error('no answer')))
    socket.once('error', reject)
    socket.once(host === undefined || address.startsWith('/') ? 'connect' : 'secureConnect', () => {
      socket.setTimeout(0)
      socket.off('error', reject)
      socket.setNoDelay(true)
      resolve(socket)
    })
  })
}

/** Without links in it: paths there are compared with those that tasks see. */
function ownFolder(): string {
  try {
    return realpathSync(tmpdir())
  } catch {
    return tmpdir()
  }
}

function say(socket: Socket, channel: AgentHello['channel'], options: CallOptions): void {
  const hello: AgentHello = {
    protocol: PROTOCOL,
    channel,
    token: options.token,
    node: options.node,
    version: options.version,
    nodeVersion: process.versions.node,
    host: hostname(),
    ...(options.name === undefined ? {} : { name: options.name }),
    pid: process.pid,
    cpus: options.cpus ?? availableParallelism(),
    memory: totalmem(),
    platform: `${process.platform} ${process.arch}`,
    peers: options.peers ?? [],
    folder: ownFolder(),
    streams: mayStream(),
  }
  const writer = new FrameWriter()
  writer.begin(FROM_AGENT.hello)
  writer.raw(pack(hello).bytes)
  writer.end()
  socket.write(writer.take())
}
