import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseNodes } from '../../src/cluster/launch/node-spec.ts'
import type { NodeOfRun } from '../../src/cluster/streams/messages.ts'
import { Routes } from '../../src/cluster/streams/routes.ts'
import { streamRunOnNodes } from '../../src/runtime/streams/stream-run.ts'
import type { StreamNodesOptions } from '../../src/runtime/streams/stream-run.ts'
import { packageVersion } from '../../src/runtime/version.ts'
import { checkText } from '../../src/stream/index.ts'
import type { Plan, StepCommand } from '../../src/stream/index.ts'
import { configOf, ears, folderOf, read, toolsOrReason, plainIn, streamsOf } from '../stream/support.ts'
import type { Stage } from '../stream/support.ts'

const { skip } = await toolsOrReason()
const NODES = 4
const growing = { committed: 'on_close', mode: 'no_update' }

/** One writer on the first node, and a reader on each of the others. */
function oneToMany(write: string): { stages: Record<string, Stage>; commands: StepCommand[] } {
  const stages: Record<string, Stage> = {
    make: {
      out: ['f', 'd'],
      rules: [
        { name: 'f', ...growing },
        { dirname: 'd', committed: 'on_close' },
      ],
    },
  }
  const commands: StepCommand[] = [{ step: 'make', run: write, nodes: ['local1'] }]
  for (let node = 2; node <= NODES; node++) {
    stages[`use${node}`] = { in: ['f', 'd'], out: [`out${node}`] }
    const run = `cat f | cksum > sum; cat sum d/1 d/2 d/3 > out${node}`
    commands.push({ step: `use${node}`, run, nodes: [`local${node}`] })
  }
  return { stages, commands }
}

async function run(
  write: string,
  more: Partial<StreamNodesOptions> = {},
  during?: (place: string) => Promise<void>,
): Promise<{ code: number; place: string; told: string }> {
  const { stages, commands } = oneToMany(write)
  const place = folderOf({ 'Config.json': configOf(stages, { permanent: ['out*'] }) })
  const io = ears()
  const specs = parseNodes(`local:${NODES}`, () => [])
  const options = { place, ...plainIn(place), version: packageVersion(), limit: 60, ...more }
  const ran = streamRunOnNodes(join(place, 'Config.json'), commands, specs, options, streamsOf(io))
  await during?.(place)
  return { code: await ran, place, told: io.told() }
}

const files = 'mkdir d; for i in 1 2 3; do echo $i > d/$i; done'
const outputs = (place: string): string[] =>
  readdirSync(place)
    .filter(name => name.startsWith('out'))
    .toSorted()

describe('ways of bytes between nodes', { skip, timeout: 120_000 }, () => {
  const ways: Record<string, { mayCall?: (from: number, to: number) => boolean; told: RegExp }> = {
    // Each network carries the bytes once.
    'in a chain': {
      told: /between nodes: local1 → local2 1\.3 MB; local2 → local3 1\.3 MB; local3 → local4 1\.3 MB\n/,
    },
    'node by node, where a node of the chain cannot reach the next': {
      mayCall: (from, to) => from === 0 || to === 0,
      told: /between nodes: local1 → local2 1\.3 MB; local1 → local3 1\.3 MB; local1 → local4 1\.3 MB\n/,
    },
    'through the coordinator, where no node can reach another': {
      mayCall: () => false,
      told: /no direct connection to local3 \(it has no address\): bytes go through the coordinator/,
    },
    'some through the coordinator': {
      mayCall: (_, to) => to !== 2,
      told: /^warning local1: no direct connection to local3[^\n]*\n(?![^]*no direct connection to local2)/m,
    },
  }
  for (const [name, { mayCall, told: expected }] of Object.entries(ways)) {
    test(name, async () => {
      const { code, place, told } = await run(
        `seq 1 200000 > f; ${files}`,
        mayCall === undefined ? {} : { mayCall },
      )
      assert.equal(code, 0, told)
      assert.match(told, expected)
      assert.deepEqual(outputs(place), ['out2', 'out3', 'out4'])
      for (const out of outputs(place)) assert.equal(read(place, out), '3581800518 1288895\n1\n2\n3\n', out)
    })
  }

  test('a node that is killed in the middle of a chain harms only its own steps', async () => {
    const write = `(seq 1 100000; : > $MILLRACE_PLACE/began; until [ -e $MILLRACE_PLACE/go ]; do sleep 0.02; done; seq 100001 200000) > f; ${files}`
    const before = new Set(nodesOfThis())
    const { code, place, told } = await run(write, {}, async folder => {
      while (!existsSync(join(folder, 'began'))) await sleep(20)
      // Nodes are started in the order of their names; the chain goes from the second to the fourth.
      const nodes = nodesOfThis().filter(pid => !before.has(pid))
      process.kill(nodes[1] as number, 'SIGKILL')
      writeFileSync(join(folder, 'go'), '')
    })
    assert.equal(code, 1)
    assert.match(told, /node local2 was lost/)
    assert.deepEqual(outputs(place), ['out3', 'out4'], told)
    for (const out of outputs(place)) assert.equal(read(place, out), '3581800518 1288895\n1\n2\n3\n', out)
  })
})

describe('a node that takes nothing', { skip, timeout: 120_000 }, () => {
  for (const [way, mayCall] of [
    ['directly', true],
    ['through the coordinator', false],
  ] as const) {
    test(`stops its own files alone, where bytes go ${way}`, async () => {
      const stages: Record<string, Stage> = {
        make: { out: ['f', 'g'], rules: [{ name: ['f', 'g'], ...growing }] },
        slow: { in: ['f'], out: ['out3'] },
        fast: { in: ['g'], out: ['out2'] },
      }
      const place = folderOf({ 'Config.json': configOf(stages, { permanent: ['out*'] }) })
      const commands: StepCommand[] = [
        {
          step: 'make',
          run: 'exec > f; echo 1; until [ -e $MILLRACE_PLACE/go ]; do sleep 0.02; done; head -c 64M /dev/zero; echo 2 > g',
          nodes: ['local1'],
        },
        { step: 'slow', run: '(read x; : > $MILLRACE_PLACE/began; wc -c) < f > out3', nodes: ['local3'] },
        { step: 'fast', run: 'cat g > out2; : > $MILLRACE_PLACE/ended', nodes: ['local2'] },
      ]
      const io = ears()
      const before = new Set(nodesOfThis())
      const specs = parseNodes('local:3', () => [])
      const options = {
        place,
        ...plainIn(place),
        version: packageVersion(),
        limit: 60,
        mayCall: () => mayCall,
      }
      const ran = streamRunOnNodes(join(place, 'Config.json'), commands, specs, options, streamsOf(io))
      while (!existsSync(join(place, 'began'))) await sleep(20)
      const slow = nodesOfThis().filter(pid => !before.has(pid))[2] as number
      process.kill(slow, 'SIGSTOP')
      writeFileSync(join(place, 'go'), '')
      let isOver = false
      void ran.then(() => (isOver = true))
      // Its reader ends while the other node still takes nothing.
      while (!existsSync(join(place, 'ended')) && !isOver) await sleep(20)
      const hasEnded = existsSync(join(place, 'ended'))
      process.kill(slow, 'SIGCONT')
      assert.equal(await ran, 0, io.told())
      assert.ok(hasEnded)
      assert.equal(read(place, 'out2'), '2\n')
      assert.equal(read(place, 'out3'), `${64 * 2 ** 20}\n`)
    })
  }
})

describe('steps that wait for each other', { skip, timeout: 120_000 }, () => {
  const pair = (first: string, second: string): Promise<{ code: number; place: string; told: string }> =>
    chainOf({ a: first, b: second }, ['local1', 'local2'])

  async function chainOf(
    lines: Record<string, string>,
    nodes: string[] | null,
  ): Promise<{ code: number; place: string; told: string }> {
    const stages: Record<string, Stage> = {}
    const names = Object.keys(lines)
    for (const [i, name] of names.entries()) {
      const before = names[(i + names.length - 1) % names.length] as string
      const rules = [{ name: `of-${name}`, ...growing }]
      stages[name] = { in: [`of-${before}`], out: [`of-${name}`], rules }
    }
    const place = folderOf({ 'Config.json': configOf(stages, { permanent: ['of-*'] }) })
    const io = ears()
    const commands = names.map((step, i): StepCommand => {
      const node = nodes?.[i]
      return { step, run: lines[step] as string, ...(node === undefined ? {} : { nodes: [node] }) }
    })
    const specs = parseNodes('local:2x1', () => [])
    const options = { place, ...plainIn(place), version: packageVersion() }
    const code = await streamRunOnNodes(join(place, 'Config.json'), commands, specs, options, streamsOf(io))
    return { code, place, told: io.told() }
  }

  test('over two nodes are stopped, and named', async () => {
    const { code, told } = await pair('read x < of-b; echo 1 > of-a', 'read x < of-a; echo 1 > of-b')
    assert.equal(code, 1)
    assert.match(
      told,
      /these steps wait for each other and are stopped: a \(pid \d+\) waits for of-b, written by b \(on local1\); b /,
    )
  })

  test('a question and its answer over two nodes are no deadlock', async () => {
    const { code, place, told } = await pair(
      'exec 3> of-a; echo 1 >&3; read x < of-b; echo $x >&3',
      'exec 3< of-a; read x <&3; echo 2 > of-b; sleep 1; read y <&3; [ $y = 2 ]',
    )
    assert.equal(code, 0, told)
    assert.equal(read(place, 'of-a'), '1\n2\n')
  })

  test('a chain of more steps than CPUs makes progress', async () => {
    const lines: Record<string, string> = { s0: 'seq 1 1000 > of-s0' }
    for (let i = 1; i < 9; i++) lines[`s${i}`] = `awk '{ print $1 + 1 }' of-s${i - 1} > of-s${i}`
    const { code, place, told } = await chainOf(lines, null)
    assert.equal(code, 0, told)
    assert.equal(read(place, 'of-s8').split('\n').at(-2), '1008')
  })
})

describe('home nodes', { skip, timeout: 120_000 }, () => {
  const nodes: NodeOfRun[] = ['a', 'b', 'c'].map((name, i) => ({
    name,
    addresses: [],
    steps: i === 0 ? [['make', 1, 0]] : [['keep', 2, (i - 1) * 2]],
  }))

  test('of a step, of one of its instances, and by the name of the file', () => {
    const policies = {
      hashing: ['h*'],
      manual: [
        { name: 'f', app_node: 'keep' },
        { name: 'g', app_node: 'keep:3' },
      ],
    }
    const stages = { make: { out: ['f', 'g', 'h*', 'x'] }, keep: { in: ['x'], out: ['out'] } }
    const { plan } = checkText(configOf(stages, { home_node_policies: policies }), 'c.json')
    const routes = new Routes(plan as Plan, nodes)
    assert.deepEqual(routes.of('f'), [1])
    assert.deepEqual(routes.of('g'), [2])
    assert.deepEqual(routes.of('x'), [1, 2])
    const homes = Array.from({ length: 60 }, (_, i) => routes.of(`h${i}`)[0])
    assert.deepEqual([...new Set(homes)].toSorted(), [0, 1, 2])
  })

  test('a file is at its home, although no step there says that it reads it', async () => {
    const stages = { make: { out: ['f'] }, keep: { in: ['x'], out: ['out'] } }
    const manual = [{ name: 'f', app_node: 'keep' }]
    const config = configOf(stages, { permanent: ['out'], home_node_policies: { manual } })
    const place = folderOf({ 'Config.json': config, x: '' })
    const io = ears()
    const commands: StepCommand[] = [
      { step: 'make', run: 'echo 1 > f', nodes: ['local1'] },
      { step: 'keep', run: 'cat f > out', nodes: ['local2'] },
    ]
    const specs = parseNodes('local:2', () => [])
    const options = { place, ...plainIn(place), version: packageVersion(), limit: 20 }
    const code = await streamRunOnNodes(join(place, 'Config.json'), commands, specs, options, streamsOf(io))
    assert.equal(code, 0, io.told())
    assert.equal(read(place, 'out'), '1\n')
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
