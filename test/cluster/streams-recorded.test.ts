// A run of streams over nodes is a run like all others: its steps are tasks with a journal, stories, logs and timeouts.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parseNodes } from '../../src/cluster/launch/node-spec.ts'
import type { RunEvent } from '../../src/core/events.ts'
import { readJournal } from '../../src/report/journal/reader.ts'
import { packageVersion } from '../../src/runtime/version.ts'
import { streamRunOnNodes } from '../../src/runtime/streams/stream-run.ts'
import type { StepCommand } from '../../src/stream/index.ts'
import {
  add,
  configOf,
  ears,
  folderOf,
  permanent,
  pipe,
  plainIn,
  read,
  streamsOf,
  toolsOrReason,
} from '../stream/support.ts'

const { skip } = await toolsOrReason()
const CLI = join(import.meta.dirname, '../../bin/millrace.js')

describe('a run of streams over nodes', { skip, timeout: 120_000 }, () => {
  test('is found by all commands that look at runs', () => {
    const steps = {
      make: { run: 'seq 4 > numbers; echo made; echo hm >&2; exit 5', nodes: ['local1'] },
      add: { run: add, nodes: ['local2'] },
    }
    const files = { 'Config.json': configOf(pipe, { permanent }), 'steps.json': JSON.stringify(steps) }
    const place = folderOf(files)
    const millrace = (...args: string[]): { status: number | null; out: string } => {
      const given = { cwd: place, encoding: 'utf8', timeout: 60_000 } as const
      const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], given)
      return { status, out: stdout + stderr }
    }
    const ran = millrace('stream', 'run', 'Config.json', '--steps', 'steps.json', '--nodes', 'local:2')
    assert.equal(ran.status, 1, ran.out)
    assert.match(ran.out, /^make \| made$/m)
    assert.match(ran.out, /between nodes: local1 → local2 \d+ B/)
    assert.equal(read(place, 'sum'), '10\n', 'numbers was complete with its close')
    assert.match(millrace('runs').out, /failed .* Config\.json/)
    assert.match(millrace('show').out, /failed make#1[^]*ended with exit code 5[^]*\| made\n {2}\| hm/)
    const story = millrace('story', 'make').out
    assert.match(story, /local1/)
    assert.match(story, /failed/)
    assert.match(millrace('story', 'add').out, /local2/)
    assert.equal(millrace('logs', 'make').out, 'made\nhm\n')
  })

  test('ends a step that takes longer than its timeout, and its reader on another node gets an error', async () => {
    const stages = {
      make: {
        out: ['numbers'],
        rules: [{ name: 'numbers', committed: 'on_termination', mode: 'no_update' }],
      },
      add: { in: ['numbers'], out: ['sum'] },
    }
    const place = folderOf({ 'Config.json': configOf(stages, { permanent }) })
    const commands: StepCommand[] = [
      { step: 'make', run: 'echo 1 > numbers; sleep 600', timeout: 300, nodes: ['local1'] },
      { step: 'add', run: add, nodes: ['local2'] },
    ]
    const io = ears()
    const code = await streamRunOnNodes(
      join(place, 'Config.json'),
      commands,
      parseNodes('local:2', () => []),
      { place, version: packageVersion(), ...plainIn(place) },
      streamsOf(io),
    )
    assert.equal(code, 1, io.told())
    assert.match(io.told(), /make#1[^]*it took longer than its timeout of 300 ms/)
    assert.match(io.told(), /reader 'add' of numbers got EIO/)
    assert.equal(existsSync(join(place, 'sum')), false)
  })

  test('knows of each instance of a step its number and its node, and what it used', async () => {
    const place = folderOf({ 'Config.json': configOf({ work: { out: ['out*'] } }, { permanent: ['out*'] }) })
    const run =
      'echo $MILLRACE_INSTANCE > out$MILLRACE_INSTANCE; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'
    const commands: StepCommand[] = [{ step: 'work', run, nodes: ['local1', 'local2'], times: 2 }]
    const io = ears()
    const code = await streamRunOnNodes(
      join(place, 'Config.json'),
      commands,
      parseNodes('local:2', () => []),
      { place, version: packageVersion(), ...plainIn(place) },
      streamsOf(io),
    )
    assert.equal(code, 0, io.told())
    for (const number of [0, 1, 2, 3]) {
      assert.ok(existsSync(join(place, `out${number}`)), io.told())
      assert.equal(read(place, `out${number}`), `${number}\n`)
    }
    const [name = ''] = readdirSync(join(place, '.millrace/runs'))
    const events: RunEvent[] = []
    for await (const event of readJournal(join(place, '.millrace/runs', name, 'journal'))) events.push(event)
    const nodes = events.flatMap(event => (event.type === 'started' ? [event.node] : []))
    assert.deepEqual(nodes.toSorted(), [0, 0, 1, 1])
    const ends = events.filter(event => event.type === 'finished')
    assert.equal(ends.length, 4)
    for (const { usage } of ends) assert.ok((usage?.cpuMs ?? 0) > 0)
  })
})
