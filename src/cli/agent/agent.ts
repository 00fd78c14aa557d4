import { readFileSync } from 'node:fs'
import { Agent } from '../../cluster/agent/agent.ts'
import { callCoordinator } from '../../cluster/agent/call.ts'
import { Incoming } from '../../cluster/transfer/incoming.ts'
import { Peers } from '../../cluster/transfer/peers.ts'
import { monotonic } from '../../cluster/link/machine-clock.ts'
import { startRenewing } from '../../cluster/lease/lease-worker.ts'
import type { AgentOrders } from '../../cluster/launch/agent-command.ts'
import { MillraceError } from '../../core/errors.ts'
import { packageVersion } from '../../runtime/version.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'

/** `millrace agent`: runs tasks of a coordinator, which has started it and says on its standard input where to call. */
export async function execute(given: Given): Promise<void> {
  const file = valueOf(given, 'orders')
  const orders = file === undefined ? await readOrders() : ordersIn(file)
  const { addresses, leases, times, token, removesSocket = false, isBlock = false } = orders
  const { SLURM_PROCID, SLURM_CPUS_ON_NODE, SLURMD_NODENAME } = process.env
  const node = orders.node + (isBlock ? Number(SLURM_PROCID ?? 0) : 0)
  const cpus = orders.cpus ?? (isBlock && SLURM_CPUS_ON_NODE ? Number(SLURM_CPUS_ON_NODE) : null)
  const name = isBlock && SLURMD_NODENAME ? { name: SLURMD_NODENAME } : {}
  const version = packageVersion()
  const call = { token, node, cpus, version, removesSocket, ...name }
  let over = (_reason: string): void => process.exit(0)
  const lasts = new Float64Array(new SharedArrayBuffer(8)).fill(Infinity)
  startRenewing({ call: { ...call, addresses: leases }, times, lasts }, reason => over(reason))
  const incoming = new Incoming()
  const peers = new Peers({ token, node, incoming, isHere: orders.isHere })
  await peers.listen()
  const calls = await callCoordinator({ ...call, addresses, peers: peers.addresses })
  // Ctrl-C and the end of a terminal are for the coordinator.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  await new Promise<void>(resolve => {
    const agent = new Agent({
      ...calls,
      incoming,
      peers,
      isExpired: () => monotonic() >= (lasts[0] as number),
      ended: () => resolve(),
    })
    over = reason => agent.end(reason)
    if (isBlock) printThrough(agent)
    process.on('SIGTERM', () => agent.end('it was told to end'))
  })
  process.exit(0)
}

/** The output of a job goes to a file that the user does not see. */
function printThrough(agent: Agent): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.write = ((chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
      agent.printed(stream === process.stdout, typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
      const done = rest.find(one => typeof one === 'function') as (() => void) | undefined
      if (done) setImmediate(done)
      return true
    }) as typeof stream.write
  }
}

const wrong = (): MillraceError =>
  new MillraceError('MR_OPTION', 'millrace agent is started by millrace run --nodes, and not by hand', {
    hint: 'Try millrace run PROGRAM --nodes local:2.',
  })

function ordersIn(file: string): AgentOrders {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as AgentOrders
  } catch {
    throw wrong()
  }
}

function readOrders(): Promise<AgentOrders> {
  return new Promise((resolve, reject) => {
    let text = ''
    const take = (chunk: Buffer): void => {
      text += chunk.toString()
      const end = text.indexOf('\n')
      if (end < 0) return
      process.stdin.off('data', take)
      process.stdin.pause()
      try {
        resolve(JSON.parse(text.slice(0, end)) as AgentOrders)
      } catch {
        reject(wrong())
      }
    }
    process.stdin.on('data', take)
    process.stdin.on('end', () => reject(wrong()))
    // Another part of the command may have paused it.
    process.stdin.resume()
  })
}
