import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import { callCoordinator, callForLease } from '../../src/cluster/agent/call.ts'
import { Listener } from '../../src/cluster/coordinator/listener.ts'
import { answerLeases } from '../../src/cluster/lease/answer-leases.ts'
import type { LeaseNews } from '../../src/cluster/lease/answer-leases.ts'
import { AgentLease, LEASE } from '../../src/cluster/lease/lease.ts'
import { FROM_AGENT, TO_AGENT } from '../../src/cluster/link/frame-types.ts'
import { FrameSplitter, FrameWriter } from '../../src/cluster/link/frames.ts'
import { newSecret } from '../../src/cluster/link/secret.ts'

// idle-agents.ts COUNT SECONDS: the coordinator's side of COUNT agents that have nothing to do, over TLS: the connections of
// each, and the answers to their leases. The agents are in another process, which calls and asks as they do. Prints the share
// of a CPU that the coordinator's side takes, and whether all of them are alive.
const [first = '1000', second = '10', orders] = process.argv.slice(2)
const count = Number(first)

async function agents(given: string): Promise<void> {
  const { token, addresses, leases } = JSON.parse(given) as Record<string, string[]> & { token: string }
  for (let node = 0; node < count; node++) {
    const call = { token, node, cpus: 1, version: 'bench', removesSocket: false }
    await callCoordinator({ ...call, addresses: addresses?.slice(-1) ?? [] })
    const socket = await callForLease({ ...call, addresses: leases?.slice(-1) ?? [] })
    const lease = new AgentLease(performance.now())
    const splitter = new FrameSplitter()
    socket.on('data', chunk => {
      splitter.push(chunk, (type, content) => {
        if (type === TO_AGENT.renewed) lease.answered(content.varint())
      })
    })
    setInterval(() => {
      const action = lease.tick(performance.now())
      if (!action) return
      if (action === 'end') process.exit(1)
      const writer = new FrameWriter()
      writer.begin(FROM_AGENT.ask)
      writer.varint(action.ask)
      writer.end()
      socket.write(writer.take())
    }, 100)
  }
}

async function coordinator(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const { token } = newSecret()
  let called = 0
  const listener = new Listener(() => void called++, { token, folder })
  const addresses = await listener.listenOnNetwork()
  const { port1, port2 } = new MessageChannel()
  let leased = 0
  let dead = 0
  const listening = new Promise<readonly string[]>(resolve => {
    port2.on('message', (news: LeaseNews) => {
      if (news.type === 'listening') resolve(news.far)
      else if (news.type === 'called') leased++
      else if (news.type === 'closed' || news.health !== 'alive') dead++
    })
  })
  await answerLeases({ token, folder, isFar: true, times: LEASE }, port1)
  const words = JSON.stringify({ token, addresses, leases: await listening })
  const child = spawn(process.execPath, [...process.execArgv, import.meta.filename, first, second, words])
  while (called < 2 * count || leased < count) await new Promise(resolve => setTimeout(resolve, 100))
  await new Promise(resolve => setTimeout(resolve, 2000))
  const [from, before] = [performance.now(), process.cpuUsage()]
  await new Promise(resolve => setTimeout(resolve, Number(second) * 1000))
  const { user, system } = process.cpuUsage(before)
  const value = ((user + system) / 1000 / (performance.now() - from)) * 100
  child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
  console.log(JSON.stringify({ value, alive: leased - dead }))
  process.exit(0)
}

await (orders === undefined ? coordinator() : agents(orders))
