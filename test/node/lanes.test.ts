import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { CommandRequest, CommandResult } from '../../src/node/processes/command-process.ts'
import { SpawnedProcess } from '../../src/node/processes/spawned-process.ts'
import { Spawner } from '../../src/node/processes/spawner.ts'
import { RequestWriter } from '../../src/node/processes/spawner-wire.ts'
import { spawnTool } from '../../src/native/spawn-tool.ts'
import { until } from '../runtime/embedded.ts'
import { ran } from './ran.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-lanes-'))
let spawner: Spawner
// The spawner does not keep a process alive; live tasks do.
const alive = setInterval(() => {}, 1000)
before(async () => {
  spawner = new Spawner(await spawnTool(), () => assert.fail('the spawner ended'))
})
after(() => {
  clearInterval(alive)
  spawner.end(true)
  rmSync(folder, { recursive: true, force: true })
})

let files = 0
const newFile = (): string => join(folder, `f${++files}`)

const request = (script: string, lane: number | null): CommandRequest => ({
  argv: ['sh', '-c', script],
  cwd: folder,
  env: process.env as Record<string, string>,
  stdin: null,
  stdout: null,
  stderr: null,
  log: null,
  cpus: null,
  limits: null,
  lane,
})

interface Started {
  process: SpawnedProcess
  ended: Promise<CommandResult>
}

function start(script: string, lane: number | null): Started {
  const process = new SpawnedProcess(spawner)
  return { process, ended: ran(process, request(script, lane)) }
}

/** A script that says that it began, and ends when its gate is opened. */
function gated(lane: number | null): Started & { began: string; open(): void } {
  const began = newFile()
  const gate = newFile()
  const script = `touch ${began}; while [ ! -e ${gate} ]; do sleep 0.01; done`
  return { ...start(script, lane), began, open: () => writeFileSync(gate, '') }
}

test('programs of a lane wait for each other, those of other lanes or of none do not', async () => {
  const first = gated(0)
  await until(() => existsSync(first.began), 'the first')
  const second = gated(0)
  const others = [gated(1), gated(null), gated(null)]
  for (const other of others) await until(() => existsSync(other.began), 'another')
  assert.equal(existsSync(second.began), false)
  first.open()
  await first.ended
  await until(() => existsSync(second.began), 'the second')
  for (const one of [second, ...others]) one.open()
  for (const { ended } of [second, ...others]) assert.equal((await ended).exitCode, 0)
})

test('one that waits can be called back, and does not begin; one that runs goes on', async () => {
  const first = gated(0)
  const mark = newFile()
  const second = start(`touch ${mark}`, 0)
  const third = start('exit 3', 0)
  await until(() => existsSync(first.began), 'the first')
  second.process.callBack()
  first.process.callBack()
  assert.equal((await second.ended).cameBack, true)
  first.open()
  assert.deepEqual([(await first.ended).cameBack, (await first.ended).exitCode], [false, 0])
  assert.equal((await third.ended).exitCode, 3)
  assert.equal(existsSync(mark), false)
})

test('one that is stopped while it waits ends as by the signal, without having begun', async () => {
  const first = gated(0)
  const mark = newFile()
  const second = start(`touch ${mark}`, 0)
  second.process.stop()
  const { cameBack, exitCode, signal } = await second.ended
  assert.deepEqual([cameBack, exitCode, signal], [false, null, 'SIGTERM'])
  first.open()
  await first.ended
  assert.equal(existsSync(mark), false)
})

test('what waits for its lane does not begin when the coordinator is gone', async () => {
  const own = spawn(await spawnTool(), [], { stdio: ['pipe', 'ignore', 2, 1], detached: true })
  const [began, mark] = [newFile(), newFile()]
  const writer = new RequestWriter()
  writer.run(1, request(`touch ${began}; sleep 3600`, 0), [])
  writer.run(2, request(`touch ${mark}`, 0), [])
  own.stdin?.write(writer.take() as Buffer)
  await until(() => existsSync(began), 'the first')
  const ended = new Promise(resolve => own.on('exit', resolve))
  own.stdin?.end()
  assert.equal(await ended, 0)
  assert.equal(existsSync(mark), false)
})

test('any mix of lanes, ends and interruptions: in turn on each lane, each once, and nothing that came back', async () => {
  const kinds = ['run', 'run', 'run', 'fail', 'missing', 'stop', 'call back'] as const
  const step = fc.record({ lane: fc.constantFrom(0, 1, 2, null), kind: fc.constantFrom(...kinds) })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 24 }), async steps => {
      const log = newFile()
      writeFileSync(log, '')
      const started = steps.map(({ lane, kind }, i) => {
        const name = `${lane ?? `n${i}`}:${i}`
        const script = `echo begin ${name} >> ${log}; echo end ${name} >> ${log}; exit ${kind === 'fail' ? 5 : 0}`
        const process = new SpawnedProcess(spawner)
        const given = request(script, lane)
        const ended = ran(process, kind === 'missing' ? { ...given, argv: ['/nowhere/at/all'] } : given)
        if (kind === 'stop') process.stop()
        if (kind === 'call back') process.callBack()
        return ended.catch((error: unknown) => error as Error)
      })
      const results = await Promise.all(started)
      const lines = readFileSync(log, 'utf8').trim().split('\n').filter(Boolean)
      const begun = lines.filter(line => line.startsWith('begin'))
      for (const [i, result] of results.entries()) {
        const times = begun.filter(line => line.endsWith(`:${i}`)).length
        const { kind } = steps[i] as (typeof steps)[number]
        if (result instanceof Error) assert.equal(kind, 'missing')
        else if (result.cameBack) assert.deepEqual([kind, times], ['call back', 0])
        else if (kind === 'stop') assert(times <= 1)
        else assert.deepEqual([times, result.exitCode], [1, kind === 'fail' ? 5 : 0])
      }
      for (const lane of ['0', '1', '2']) {
        const own = lines.filter(line => line.split(' ')[1]?.startsWith(`${lane}:`))
        const order = own.filter(line => line.startsWith('begin')).map(line => Number(line.split(':')[1]))
        assert.deepEqual(
          order,
          order.toSorted((a, b) => a - b),
        )
        // One that is stopped may not come to say that it ends.
        let running: string | null = null
        for (const line of own) {
          const [what, name] = line.split(' ') as [string, string]
          if (what === 'begin') running = name
          else assert.equal(name, running)
        }
      }
    }),
    { numRuns: 25 },
  )
})
