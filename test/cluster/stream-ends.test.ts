import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { FrameLink } from '../../src/cluster/streams/frame-link.ts'
import type { FromStreamNode, StreamOrders, ToStreamNode } from '../../src/cluster/streams/messages.ts'
import { parseNodes } from '../../src/cluster/launch/node-spec.ts'
import type { NodeSpec } from '../../src/cluster/launch/node-spec.ts'
import { streamRunOnNodes } from '../../src/runtime/streams/stream-run.ts'
import { packageVersion } from '../../src/runtime/version.ts'
import { configOf, ears, folderOf, toolsOrReason, plainIn, streamsOf } from '../stream/support.ts'

const { skip } = await toolsOrReason()
const millrace = join(import.meta.dirname, '../../bin/millrace.js')
const config = configOf({ make: { out: ['f'] }, use: { in: ['f'], out: ['out'] } }, { permanent: ['out'] })

const started: ChildProcess[] = []
after(() => {
  for (const child of started) child.kill('SIGKILL')
})

/** A node, as the coordinator starts it, and what it says. */
function startNode(): {
  child: ChildProcess
  link: FrameLink<FromStreamNode, ToStreamNode>
  said: string[]
  ended: Promise<number | null>
} {
  const child = spawn(process.execPath, [millrace, 'stream', 'node'], { stdio: ['pipe', 'pipe', 'inherit'] })
  started.push(child)
  const said: string[] = []
  const link = new FrameLink<FromStreamNode, ToStreamNode>(child.stdout, child.stdin, {
    message: message => void said.push(message.say),
    relayed: () => undefined,
  })
  return { child, link, said, ended: new Promise(resolve => child.on('close', resolve)) }
}

const ordersFor = (place: string): StreamOrders => ({
  mark: `test${process.pid}`,
  version: packageVersion(),
  file: join(place, 'Config.json'),
  text: config,
  place,
  node: 0,
  nodes: [
    { name: 'one', addresses: [], steps: [['make', 1, 0]] },
    { name: 'two', addresses: [], steps: [['use', 1, 0]] },
  ],
  environment: {},
})

async function nothingLeftOf(pid: number): Promise<void> {
  const left = (): string[] =>
    readdirSync('/dev/shm').filter(name => name.includes(`.run${pid}.`) || name.includes(`.${pid}.`))
  for (let tries = 0; left().length > 0 && tries < 400; tries++) await sleep(50)
  assert.deepEqual(left(), [])
}

describe('a node of a streaming workflow ends', { skip, timeout: 120_000 }, () => {
  const ways: Record<string, (link: FrameLink<FromStreamNode, ToStreamNode>, child: ChildProcess) => void> = {
    'when the workflow ends while it still starts': link => link.say({ do: 'finish', isOk: true }),
    'when the workflow is stopped while it still starts': link => {
      link.say({ do: 'stop' })
      link.say({ do: 'finish', isOk: false })
    },
    'when the coordinator is gone while it still starts': (_, child) => child.stdin?.end(),
  }
  for (const [name, end] of Object.entries(ways)) {
    test(name, async () => {
      const { child, link, said, ended } = startNode()
      while (!said.includes('hello')) await sleep(10)
      // Both orders are there before the node can have made its board.
      link.say({ do: 'start', orders: ordersFor(folderOf({ 'Config.json': config })) })
      end(link, child)
      assert.equal(await ended, 0)
      assert.equal(said.filter(word => word !== 'pulse').at(-1), 'result')
      await nothingLeftOf(child.pid as number)
    })
  }

  test('when it cannot start', async () => {
    const { link, said, ended } = startNode()
    while (!said.includes('hello')) await sleep(10)
    link.say({ do: 'start', orders: { ...ordersFor('/nowhere'), text: '{' } })
    link.say({ do: 'finish', isOk: true })
    assert.equal(await ended, 0)
    assert.ok(said.includes('fault'))
  })
})

describe('a run on several nodes ends', { skip, timeout: 120_000 }, () => {
  async function runOn(specs: readonly NodeSpec[], place: string, silence: number): Promise<string> {
    const io = ears()
    const commands = [
      { step: 'make', run: ': > $MILLRACE_PLACE/began; sleep 100 > f', nodes: [specs[0]?.name ?? ''] },
      { step: 'use', run: 'cat f > out', nodes: [specs[1]?.name ?? ''] },
    ]
    const options = { place, ...plainIn(place), version: packageVersion(), silence }
    const told = await streamRunOnNodes(
      join(place, 'Config.json'),
      commands,
      specs,
      options,
      streamsOf(io),
    ).then(
      code => `exit code ${code}`,
      (error: Error) => error.message,
    )
    return `${io.told()}${told}`
  }

  test('when a node never calls, and names it', async () => {
    const place = folderOf({ 'Config.json': config, 'bin/ssh': '#!/bin/sh\nexec sleep 100\n' })
    chmodSync(join(place, 'bin/ssh'), 0o755)
    const path = process.env['PATH']
    process.env['PATH'] = `${join(place, 'bin')}:${path}`
    try {
      const specs: NodeSpec[] = [
        { by: 'ssh', name: 'far', host: 'far', cpus: null },
        { by: 'local', name: 'here', cpus: null },
      ]
      assert.match(await runOn(specs, place, 2000), /far: no call within 2 s/)
    } finally {
      process.env['PATH'] = path
    }
  })

  test('when a node hangs, and names it', async () => {
    const place = folderOf({ 'Config.json': config })
    const before = new Set(nodesOfThis())
    const ran = runOn(
      parseNodes('local:2', () => []),
      place,
      6000,
    )
    while (!existsSync(join(place, 'began'))) await sleep(20)
    // The first is that of the writer. Its steps end when it is killed.
    const [writer] = nodesOfThis().filter(pid => !before.has(pid))
    process.kill(writer as number, 'SIGSTOP')
    const told = await ran
    assert.match(told, /node local1 was lost: nothing was heard of it for 6 s/)
    assert.match(told, /exit code 1$/)
    await nothingLeftOf(writer as number)
  })
})

/** Nodes that this process has started, in the order of their start. */
function nodesOfThis(): number[] {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
  return children
    .filter(Boolean)
    .map(Number)
    .filter(pid => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('stream\0node'))
}
