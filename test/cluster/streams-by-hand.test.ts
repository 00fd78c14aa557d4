// Workflows on several nodes whose steps their user starts.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseNodes } from '../../src/cluster/launch/node-spec.ts'
import { streamUpOnNodes } from '../../src/cluster/streams/up-nodes.ts'
import type { NodesLine } from '../../src/stream/board/snapshot.ts'
import { packageVersion } from '../../src/runtime/version.ts'
import { configOf, ears, folderOf, read, toolsOrReason } from '../stream/support.ts'
import type { Stage } from '../stream/support.ts'

const { skip, tools } = await toolsOrReason()
const millrace = join(import.meta.dirname, '../../bin/millrace.js')
const pipe: Record<string, Stage> = {
  make: { out: ['f'], rules: [{ name: 'f', committed: 'on_close', mode: 'no_update' }] },
  use: { in: ['f'], out: ['out'] },
}
let names = 0

interface Ended {
  code: number | null
  err: string
}

/** A workflow that is up on two nodes. */
class Up {
  readonly name = `test.hand${process.pid}.${names++}`
  readonly place: string
  readonly io = ears()
  readonly stop = new AbortController()
  readonly code: Promise<number>

  constructor(at: string[], times: string[] = [], name?: string, stages = pipe) {
    if (name !== undefined) this.name = name
    this.place = folderOf({ 'Config.json': configOf(stages, { permanent: ['out'] }) })
    const options = { place: this.place, version: packageVersion(), limit: 60, byHand: this.name }
    const nodes = parseNodes('local:2', () => [])
    const file = join(this.place, 'Config.json')
    this.code = streamUpOnNodes(file, at, times, nodes, options, this.io, this.stop.signal)
  }

  /** The managed directories, once both nodes are up. */
  async dirs(): Promise<string[]> {
    let isOver = false
    void this.code.then(() => (isOver = true))
    for (; ; await sleep(20)) {
      const found = [...this.io.told().matchAll(/on (local\d), in (.*):$/gm)]
      if (found.length === 2) return found.toSorted().map(([, , dir]) => dir as string)
      assert.ok(!isOver, this.io.told())
    }
  }

  exec(node: number, step: string, line: string, cwd: string): Promise<Ended> {
    const words = ['stream', 'exec', '--workflow', `${this.name}.local${node}`, '--app', step, '--']
    return ended(process.execPath, [millrace, ...words, 'sh', '-c', line], cwd, {})
  }
}

function ended(program: string, args: string[], cwd: string, env: NodeJS.ProcessEnv): Promise<Ended> {
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let err = ''
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  return new Promise(resolve => child.on('close', code => resolve({ code, err })))
}

const leftOf = (name: string): string[] => readdirSync('/dev/shm').filter(one => one.includes(name))

describe('steps that their user starts on several nodes', { skip, timeout: 120_000 }, () => {
  test('one by exec, the other one with the variables of CAPIO: they stream', async () => {
    const up = new Up(['make=local1', 'use=local2'])
    const [first = '', second = ''] = await up.dirs()
    // The writer goes on when the reader has seen the first line.
    const make = `exec > f; echo 1; until [ -e ${up.place}/seen ]; do sleep 0.02; done; echo 2`
    const writer = up.exec(1, 'make', make, first)
    const use = `(read x; echo $x; : > ${up.place}/seen; cat) < f > out`
    const reader = ended('sh', ['-c', use], second, {
      LD_PRELOAD: tools?.library,
      CAPIO_DIR: second,
      CAPIO_WORKFLOW_NAME: `${up.name}.local2`,
      CAPIO_APP_NAME: 'use',
    })
    assert.deepEqual([(await writer).code, (await reader).code], [0, 0])
    assert.equal(await up.code, 0, up.io.told())
    assert.equal(read(up.place, 'out'), '1\n2\n')
    assert.match(up.io.told(), /2 of 2 steps ok/)
    assert.deepEqual(leftOf(up.name), [])
  })

  test('a step that is started several times has ended with the last of them', async () => {
    const up = new Up(['make=local1', 'use=local2'], ['use=2'])
    const [first = '', second = ''] = await up.dirs()
    assert.match(up.io.told(), /--app use -- program arguments {2}\(2 times\)/)
    await up.exec(1, 'make', 'echo 1 > f', first)
    await up.exec(2, 'use', 'cat f > out', second)
    await up.exec(2, 'use', 'cat f >> out', second)
    assert.equal(await up.code, 0, up.io.told())
    assert.equal(read(up.place, 'out'), '1\n1\n')
  })

  test('a step is refused on another node than its own', async () => {
    const up = new Up(['make=local1', 'use=local2'])
    const [, second = ''] = await up.dirs()
    const { code, err } = await up.exec(2, 'make', 'echo 1 > f', second)
    assert.equal(code, 2)
    assert.match(err, /step 'make' is not for this node\n.*its steps are use.*MR_STREAM_STEPS/)
    up.stop.abort()
    assert.equal(await up.code, 130)
    assert.deepEqual(leftOf(up.name), [])
  })

  test('steps that wait for each other are found once all have begun, and end', async () => {
    const grows = (name: string): NonNullable<Stage['rules']> => [
      { name, committed: 'on_close', mode: 'no_update' },
    ]
    const stages = {
      make: { in: ['of-use'], out: ['of-make'], rules: grows('of-make') },
      use: { in: ['of-make'], out: ['of-use', 'out'], rules: grows('of-use') },
    }
    const up = new Up(['make=local1', 'use=local2'], ['use=2'], undefined, stages)
    const [first = '', second = ''] = await up.dirs()
    const writer = up.exec(1, 'make', 'read x < of-use; echo 1 > of-make', first)
    const reader = up.exec(2, 'use', 'read x < of-make; echo 1 > of-use', second)
    // The second instance could write what the first waits for.
    await sleep(8000)
    assert.doesNotMatch(up.io.told(), /wait for each other/)
    const other = up.exec(2, 'use', 'read x < of-make; echo 1 > out', second)
    assert.equal(await up.code, 1, up.io.told())
    assert.match(up.io.told(), /these steps wait for each other and are stopped: make .*written by use/)
    for (const one of [writer, reader, other]) assert.notEqual((await one).code, 0)
    assert.deepEqual(leftOf(up.name), [])
  })

  test('a step that fails gives its reader on the other node an error, and nothing is kept', async () => {
    const up = new Up(['make=local1', 'use=local2'])
    const [first = '', second = ''] = await up.dirs()
    const reader = up.exec(2, 'use', 'cat f > out', second)
    await up.exec(1, 'make', '{ seq 1 20000; kill -9 $$; } > f', first)
    assert.notEqual((await reader).code, 0)
    assert.equal(await up.code, 1, up.io.told())
    assert.match(up.io.told(), /step 'make' failed/)
    assert.equal(existsSync(join(up.place, 'out')), false)
  })

  test('a second workflow of that name is refused, and harms the first in no way', async () => {
    const up = new Up(['make=local1', 'use=local2'])
    const [first = '', second = ''] = await up.dirs()
    const again = new Up(['make=local1', 'use=local2'], [], up.name)
    assert.equal(await again.code, 1)
    assert.match(again.io.told(), /is up already/)
    await Promise.all([up.exec(1, 'make', 'echo 1 > f', first), up.exec(2, 'use', 'cat f > out', second)])
    assert.equal(await up.code, 0, up.io.told())
    assert.equal(read(up.place, 'out'), '1\n')
  })

  test('what is asked for is checked before anything starts', async () => {
    for (const [at, times, expected] of [
      [['mak=local1'], [], /'mak=local1' does not say where a step is started\n.*the steps are make, use/],
      [['make=locl1'], [], /a node 'locl1'.*\n?.*did you mean 'local1'\?/],
      [[], ['make=no'], /'make=no' does not say how often/],
    ] as const) {
      const up = new Up([...at], [...times])
      assert.equal(await up.code, 2)
      assert.match(up.io.told(), expected)
    }
  })

  test('ps asks all nodes', async () => {
    const up = new Up(['make=local1', 'use=local2'])
    const [first = '', second = ''] = await up.dirs()
    const { stdout, status } = spawnSync(process.execPath, [millrace, 'stream', 'ps', '--nodes', 'local:2'], {
      encoding: 'utf8',
    })
    assert.equal(status, 0)
    assert.match(stdout, /^this machine:$/m)
    for (const [node, dir] of [
      [1, first],
      [2, second],
    ] as const)
      assert.ok(stdout.includes(`  ${up.name}.local${node} in ${dir}\n    step make: not started\n`), stdout)
    up.stop.abort()
    assert.equal(await up.code, 130)
  })

  test('ps says what goes from node to node, and who waits for which byte of whom', async () => {
    const up = new Up(['make=local1', 'use=local2'])
    const [first = '', second = ''] = await up.dirs()
    const make = `exec > f; head -c 5000000 /dev/zero; until [ -e ${up.place}/seen ]; do sleep 0.02; done`
    const writer = up.exec(1, 'make', make, first)
    const reader = up.exec(2, 'use', 'cat f > out', second)
    const ps = (more: string[] = []): Promise<string> =>
      printed(['stream', 'ps', '--nodes', 'local:2', '--workflow', `${up.name}.local2`, ...more])
    const wait = /use \(pid \d+\) waits for more of f, from byte \d+, written by make on local1\n/
    await until(ps, wait)
    const ofWriter = ['stream', 'ps', '--workflow', `${up.name}.local1`]
    await until(() => printed(ofWriter), /^ {2}local1 → local2: 5\.0 MB sent, [\d.]+ [kM]?B\/s$/m)
    const lines = (await printed([...ofWriter, '--json'])).split('\n').filter(line => line !== '')
    const told = lines.map(line => JSON.parse(line) as NodesLine).find(({ type }) => type === 'nodes')
    assert.equal(told?.name, 'local1')
    assert.deepEqual(told.places, { make: ['local1'], use: ['local2'] })
    const [link, ...more] = told.links
    assert.deepEqual([link?.from, link?.to, link?.byCoordinator, more], ['local1', 'local2', false, []])
    assert.ok((link?.bytes ?? 0) > 5_000_000 && (link?.bytes ?? 0) < 5_100_000)
    // Nothing goes any more.
    await until(() => printed(ofWriter), /5\.0 MB sent, 0 B\/s$/m)
    writeFileSync(`${up.place}/seen`, '')
    assert.deepEqual([(await writer).code, (await reader).code], [0, 0])
    assert.equal(await up.code, 0, up.io.told())
  })
})

async function printed(args: string[]): Promise<string> {
  const child = spawn(process.execPath, [millrace, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
  await new Promise(resolve => child.on('close', resolve))
  return text
}

/** Looks again and again; what was seen last is told when it never comes. */
async function until(look: () => Promise<string>, expected: RegExp): Promise<void> {
  let seen = ''
  for (let tries = 0; tries < 100; tries++) {
    seen = await look()
    if (expected.test(seen)) return
    await sleep(100)
  }
  assert.match(seen, expected)
}
