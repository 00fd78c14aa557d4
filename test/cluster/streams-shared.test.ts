import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseNodes } from '../../src/cluster/launch/node-spec.ts'
import type { NodeSpec } from '../../src/cluster/launch/node-spec.ts'
import { RELAY } from '../../src/cluster/streams/messages.ts'
import { frameOf, wantedFrames } from '../../src/cluster/streams/relay-frame.ts'
import { probeSight } from '../../src/cluster/streams/sight.ts'
import type { ProbedNode, ProbeOrder } from '../../src/cluster/streams/sight.ts'
import { streamRunOnNodes } from '../../src/runtime/streams/stream-run.ts'
import { packageVersion } from '../../src/runtime/version.ts'
import { Board, checkText, planLines } from '../../src/stream/index.ts'
import type { StepCommand } from '../../src/stream/index.ts'
import { configOf, ears, folderOf, read, toolsOrReason, plainIn, streamsOf } from '../stream/support.ts'
import type { Stage } from '../stream/support.ts'

const { tools, skip } = await toolsOrReason()
const pipe: Record<string, Stage> = {
  make: { out: ['f', 'half'], rules: [{ name: 'f', committed: 'on_close', mode: 'no_update' }] },
  use: { in: ['f'], out: ['out'] },
}

interface Given {
  readonly stages?: Record<string, Stage>
  readonly commands: readonly StepCommand[]
  readonly specs?: readonly NodeSpec[]
  readonly files?: Record<string, string>
  readonly during?: (dir: string) => Promise<void>
}

async function run(given: Given): Promise<{ code: number; dir: string; told: string }> {
  const permanent = ['out', 'half', 'whole']
  const place = folderOf({ 'Config.json': configOf(given.stages ?? pipe, { permanent }) })
  const dir = folderOf(given.files ?? {})
  const io = ears()
  const specs = given.specs ?? parseNodes('local:2', () => [])
  const options = { place, dir, ...plainIn(place), version: packageVersion(), limit: 60 }
  const ran = streamRunOnNodes(join(place, 'Config.json'), given.commands, specs, options, streamsOf(io))
  await given.during?.(dir)
  return { code: await ran, dir, told: io.told() }
}

const on = (node: number, step: string, line: string): StepCommand => ({
  step,
  run: line,
  nodes: [`local${node}`],
})

describe('a managed directory that all nodes share', { skip, timeout: 300_000 }, () => {
  test('a reader reads as the file grows, and no bytes go from node to node', async () => {
    const { code, dir, told } = await run({
      files: { before: 'stays' },
      commands: [
        on(1, 'make', 'exec > f; echo 1; until [ -e seen ]; do sleep 0.02; done; echo 2; rm seen'),
        on(2, 'use', '(read x; echo $x; : > seen; cat) < f > out'),
      ],
    })
    assert.equal(code, 0, told)
    assert.equal(read(dir, 'out'), '1\n2\n')
    assert.doesNotMatch(told, /between nodes/)
    assert.deepEqual(readdirSync(dir).toSorted(), ['before', 'out'])
  })

  test('bytes are the same: 40 MB in odd pieces', async () => {
    const { code, dir, told } = await run({
      commands: [
        on(
          1,
          'make',
          'head -c 40000007 /dev/urandom | tee copy | dd bs=7777 iflag=fullblock of=f 2> /dev/null',
        ),
        on(2, 'use', 'sha256sum < f > out'),
      ],
    })
    assert.equal(code, 0, told)
    const copy = readFileSync(join(dir, 'copy'))
    assert.equal(read(dir, 'out').split(' ')[0], createHash('sha256').update(copy).digest('hex'))
  })

  test('a step that fails leaves no half file, and its reader on another node gets an error', async () => {
    const { code, dir, told } = await run({
      files: { before: 'stays' },
      commands: [
        on(1, 'make', 'echo 1 > half; echo 1 > g; { seq 1 20000; kill -9 $$; } > f'),
        on(2, 'use', 'sort f > out'),
      ],
    })
    assert.equal(code, 1, told)
    assert.match(told, /step 'use' failed/)
    assert.deepEqual(readdirSync(dir).toSorted(), ['before', 'g'], told)
  })

  test('a node that is lost leaves no half file, and harms no file of another', async () => {
    const { code, dir, told } = await run({
      stages: { ...pipe, other: { out: ['whole'] } },
      commands: [
        on(1, 'make', 'echo 1 > half; echo $PPID > pid; exec > f; echo 1; sleep 100'),
        on(2, 'use', 'cat f > out'),
        on(2, 'other', 'echo whole > whole'),
      ],
      during: async at => {
        while (!existsSync(join(at, 'pid')) || read(at, 'pid') === '') await sleep(20)
        const nodes = spawnSync('ps', ['-o', 'pid=', '-o', 'args=', '--ppid', String(process.pid)], {
          encoding: 'utf8',
        })
        const [first] = nodes.stdout.split('\n').filter(line => line.includes('stream node'))
        process.kill(Number.parseInt(first ?? '', 10), 'SIGKILL')
      },
    })
    assert.equal(code, 1, told)
    assert.match(told, /node local1 was lost/)
    assert.deepEqual(readdirSync(dir).toSorted(), ['pid', 'whole'], told)
  })

  const canHide = spawnSync('unshare', ['-m', 'true']).status === 0
  test('a directory that is another one on each node is refused', { skip: !canHide }, async () => {
    const bin = folderOf({})
    const hidden = join(bin, 'dir')
    mkdirSync(hidden)
    writeFileSync(
      join(bin, 'ssh'),
      `#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\nexec unshare -m sh -c "mount -t tmpfs none ${hidden}; $2"\n`,
    )
    chmodSync(join(bin, 'ssh'), 0o755)
    const before = process.env['PATH']
    process.env['PATH'] = `${bin}:${before}`
    try {
      const place = folderOf({ 'Config.json': configOf(pipe, { permanent: ['out'] }) })
      const io = ears()
      const specs = ['a', 'b'].map(name => ({ by: 'ssh', name, host: name, cpus: null }) as const)
      const options = { place, dir: hidden, ...plainIn(place), version: packageVersion() }
      const commands = ['make', 'use'].map(step => ({ step, run: 'touch $MILLRACE_PLACE/began' }))
      const code = await streamRunOnNodes(join(place, 'Config.json'), commands, specs, options, streamsOf(io))
      assert.equal(code, 2)
      assert.match(io.told(), /what a writes in .*dir is not seen by b/)
      assert.equal(existsSync(join(place, 'began')), false)
    } finally {
      process.env['PATH'] = before
    }
  })

  test('a file that is not seen yet lets others go on, and is complete when it is seen', async () => {
    assert.ok(tools)
    const dir = folderOf({ f: '12345', g: '1' })
    const config = configOf({ ...pipe, more: { out: ['g'] }, use: { in: ['f', 'g'], out: ['out'] } })
    const { plan } = checkText(config, 'Config.json')
    assert.ok(plan)
    const board = new Board(tools, `test.aside${process.pid}`)
    await board.create(planLines(plan, { dir, workflow: board.workflow }), process.pid)
    try {
      const words = ['relay', '-w', board.workflow, '--shared', '--timeout', '60']
      const relay = spawn(tools.board, words, { stdio: ['pipe', 'ignore', 'inherit'] })
      const tell = (type: number, name: string, ...fields: [size: 1 | 4 | 8, value: number][]): void =>
        void relay.stdin.write(
          frameOf(type, name, writer => {
            for (const [size, value] of fields) {
              const bytes = Buffer.alloc(8)
              bytes.writeBigUInt64LE(BigInt(value))
              writer.raw(bytes.subarray(0, size))
            }
          }),
        )
      const until = async (name: string, state: string): Promise<Record<string, string>> => {
        for (; ; await sleep(20)) {
          const snapshot = await board.ps()
          const all = Object.fromEntries((snapshot?.files ?? []).map(one => [one.path, one.state]))
          const make = snapshot?.steps.find(one => one.name === 'make')
          if (all[name] === state) return { ...all, ends: String(make?.endedOk) }
        }
      }
      relay.stdin.write(wantedFrames([]))
      tell(RELAY.begin, 'f', [4, 0], [1, 0])
      tell(RELAY.data, 'f', [8, 7])
      tell(RELAY.data, 'f', [8, 9])
      tell(RELAY.complete, 'f', [8, 9], [4, 0o644])
      tell(RELAY.ended, 'make', [4, 1], [4, 0])
      tell(RELAY.begin, 'g', [4, 0], [1, 0])
      tell(RELAY.complete, 'g', [8, 1], [4, 0o644])
      assert.deepEqual(await until('g', 'committed'), { f: 'growing', g: 'committed', ends: '0' })
      writeFileSync(join(dir, 'f'), '123456789')
      const { f } = await until('f', 'committed')
      assert.equal(f, 'committed')
      while ((await board.ps())?.steps.find(one => one.name === 'make')?.endedOk !== 1) await sleep(20)
      relay.stdin.end()
    } finally {
      await board.destroy(true)
    }
  })

  test('what another node has told of, and is not there, fails with a code', async () => {
    assert.ok(tools)
    const dir = folderOf({ f: '12345' })
    const { plan } = checkText(configOf(pipe), 'Config.json')
    assert.ok(plan)
    const board = new Board(tools, `test.sight${process.pid}`)
    await board.create(planLines(plan, { dir, workflow: board.workflow }), process.pid)
    try {
      const words = ['relay', '-w', board.workflow, '--shared', '--timeout', '0.2']
      const relay = spawn(tools.board, words, { stdio: ['pipe', 'ignore', 'inherit'] })
      const numbers = (type: number, ...fields: [size: 1 | 4 | 8, value: number][]): Buffer =>
        frameOf(type, 'f', writer => {
          for (const [size, value] of fields) {
            const bytes = Buffer.alloc(8)
            bytes.writeBigUInt64LE(BigInt(value))
            writer.raw(bytes.subarray(0, size))
          }
        })
      const state = async (): Promise<unknown> =>
        (await board.ps())?.files.filter(({ path }) => path === 'f').map(one => [one.state, one.reason])[0]
      relay.stdin.write(wantedFrames([]))
      relay.stdin.write(numbers(RELAY.begin, [4, 0], [1, 0]))
      relay.stdin.write(numbers(RELAY.data, [8, 5]))
      relay.stdin.write(numbers(RELAY.data, [8, 9]))
      for (let now = await state(); !JSON.stringify(now ?? '').includes('failed'); now = await state())
        await sleep(20)
      assert.match(
        JSON.stringify(await state()),
        /MR_STREAM_UNSEEN: another node has written 9 bytes, and 5 are there/,
      )
      relay.stdin.end()
    } finally {
      await board.destroy(true)
    }
  })
})

describe('what a file system promises', () => {
  /** A file that others see as far as `seen` says. */
  const nodesOf = (seen: (written: number, synced: number) => number): ProbedNode[] => {
    let written = 0
    let synced = 0
    const probe = (order: ProbeOrder): Promise<boolean> => {
      if (order.act === 'append') written++
      if (order.act === 'sync') synced = written
      if (order.act === 'remove') written = synced = 0
      return Promise.resolve(order.act !== 'look' || seen(written, synced) >= order.bytes)
    }
    return [
      { name: 'a', probe },
      { name: 'b', probe },
    ]
  }

  test('bytes are seen when they are written', async () => {
    assert.equal(
      await probeSight(
        '/d',
        nodesOf(written => written),
      ),
      'written',
    )
  })

  test('bytes are seen after fsync', async () => {
    assert.equal(
      await probeSight(
        '/d',
        nodesOf((_, synced) => synced),
      ),
      'synced',
    )
  })

  test('a file that others see once, and that does not grow for them, is refused', async () => {
    const nodes = nodesOf(written => Math.min(1, written))
    await assert.rejects(probeSight('/d', nodes), { code: 'MR_STREAM_DIR' })
  })
})
