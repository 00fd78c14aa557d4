// A run of streams is a run like all others: it has a journal, stories, logs and exports, and its steps are tasks.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { RunEvent } from '../../src/core/events.ts'
import { readJournal } from '../../src/report/journal/reader.ts'
import { add, assertClean, configOf, folderOf, permanent, pipe, read, run, toolsOrReason } from './support.ts'

const { skip } = await toolsOrReason()
const CLI = fileURLToPath(new URL('../../bin/millrace.js', import.meta.url))

async function eventsOf(place: string): Promise<RunEvent[]> {
  const [name] = readdirSync(join(place, '.millrace', 'runs'))
  const events: RunEvent[] = []
  for await (const event of readJournal(join(place, '.millrace', 'runs', name!, 'journal')))
    events.push(event)
  return events
}

const eventually = async <T>(find: () => T | undefined): Promise<T> => {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(20)) {
    const found = find()
    if (found !== undefined) return found
  }
  throw new Error('it did not come about')
}

/** The process that starts the programs of this process. */
const spawnerPid = (): number | undefined =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .find(pid => {
      try {
        const parent = / (\d+) /.exec(
          readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) . /s, ' '),
        )?.[1]
        return (
          Number(parent) === process.pid &&
          readFileSync(`/proc/${pid}/comm`, 'latin1').startsWith('millrace-spawn')
        )
      } catch {
        return false
      }
    }) as number | undefined

describe('a run of streams', { skip, timeout: 120_000 }, () => {
  afterEach(assertClean)

  test('is found by all commands that look at runs', () => {
    const place = folderOf({ 'Config.json': configOf(pipe, { permanent }) })
    const millrace = (...args: string[]): { status: number | null; out: string } => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], {
        cwd: place,
        encoding: 'utf8',
        timeout: 60_000,
      })
      return { status, out: stdout + stderr }
    }
    const steps = ['--step', 'make=seq 4 > numbers; echo made; echo hm >&2; exit 5', '--step', `add=${add}`]
    const ran = millrace('stream', 'run', 'Config.json', ...steps, '--trace', 'trace.json')
    assert.equal(ran.status, 1, ran.out)
    assert.match(ran.out, /^make \| made$/m)
    assert.match(ran.out, /rerun +millrace stream run Config\.json --step 'make=seq 4 /)
    assert.equal(read(place, 'sum'), '10\n', 'numbers was complete with its close')
    assert.match(millrace('runs').out, /failed .* Config\.json/)
    assert.match(millrace('show').out, /failed make#1[^]*ended with exit code 5[^]*\| made\n {2}\| hm/)
    assert.match(millrace('story', 'add').out, /it started without a CPU/)
    assert.equal(millrace('logs', 'make').out, 'made\nhm\n')
    assert.match(read(place, 'trace.json'), /"name":"make/)
  })

  test('tells in its journal how each file grew, who wrote it and who reads it', async () => {
    const steps = {
      make: `seq 4 > numbers; until [ -e $MILLRACE_PLACE/go ]; do sleep 0.02; done`,
      add: `${add}; echo > $MILLRACE_PLACE/go`,
    }
    const { code, place, told } = await run({ stages: pipe, steps, extra: { permanent } })
    assert.equal(code, 0, told)
    const streams = (await eventsOf(place)).filter(event => event.type === 'stream')
    const numbers = streams.filter(({ path }) => path === 'numbers').at(-1)!
    assert.deepEqual(numbers.producers, ['make'])
    assert.deepEqual(numbers.readers, [{ name: 'add', waits: null }])
    assert.deepEqual([numbers.state, numbers.bytes], ['committed', 8])
  })

  test('has all its steps running at once, however few CPUs there are', async () => {
    const count = 12
    const names = Array.from({ length: count }, (_, i) => `s${i}`)
    const rule = (name: string) => [{ name, committed: 'on_close', mode: 'no_update' }]
    const stages = Object.fromEntries(
      names.map((name, i) => [
        name,
        { out: [`f${i}`], rules: rule(`f${i}`), ...(i === 0 ? {} : { in: [`f${i - 1}`] }) },
      ]),
    )
    const all = `until [ $(ls $MILLRACE_PLACE/on | wc -l) = ${count} ]; do sleep 0.02; done`
    const steps = Object.fromEntries(
      names.map((name, i) => [
        name,
        `: > $MILLRACE_PLACE/on/${name}; ${i === 0 ? `${all}; echo x` : `cat f${i - 1}`} > f${i}`,
      ]),
    )
    const place = folderOf({ 'on/none': '' })
    const { code, told } = await run({
      stages,
      steps: Object.fromEntries(
        Object.entries(steps).map(([name, line]) => [name, line.replace(`= ${count}`, `= ${count + 1}`)]),
      ),
      extra: { permanent: [`f${count - 1}`] },
      options: { place, run: { folder: folderOf({}), progress: 'plain', cpus: 1 } },
    })
    assert.equal(code, 0, told)
    assert.equal(read(place, `f${count - 1}`), 'x\n')
  })

  test('ends a step that takes longer than its timeout, and its reader gets an error', async () => {
    const stages = {
      make: {
        out: ['numbers'],
        rules: [{ name: 'numbers', committed: 'on_termination', mode: 'no_update' }],
      },
      add: { in: ['numbers'], out: ['sum'] },
    }
    const commands = [
      { step: 'make', run: 'echo 1 > numbers; sleep 600', timeout: 300 },
      { step: 'add', run: add },
    ]
    const { code, place, told } = await run({ stages, steps: {}, commands, extra: { permanent } })
    assert.equal(code, 1, told)
    assert.match(told, /make#1[^]*it took longer than its timeout of 300 ms/)
    assert.match(told, /reader 'add' of numbers got EIO/)
    assert.equal(existsSync(join(place, 'sum')), false)
  })

  const skipKill = process.env['MILLRACE_SPAWNER'] === 'off' && 'Node starts the programs'
  test(
    'does not start steps again when the process that starts programs is killed',
    { skip: skipKill },
    async () => {
      const place = folderOf({})
      const ran = run({
        stages: pipe,
        steps: { make: 'echo >> $MILLRACE_PLACE/begun; sleep 600 > numbers', add },
        extra: { permanent },
        options: { place },
      })
      await eventually(() => (existsSync(join(place, 'begun')) ? true : undefined))
      process.kill(Number(await eventually(spawnerPid)), 'SIGKILL')
      const { code, told } = await ran
      assert.equal(code, 1, told)
      assert.match(told, /failed make#1[^]*the process that starts programs has ended/)
      assert.equal(read(place, 'begun'), '\n', 'it began once')
      assert.equal(existsSync(join(place, 'sum')), false)
    },
  )

  test("keeps its journal when all files of the user's directory are outputs of a step", async () => {
    const dir = folderOf({ mine: 'before' })
    for (const kept of [[], ['*']]) {
      const { code, told } = await run({
        stages: { make: { out: ['*'] } },
        steps: { make: 'echo 1 > a; echo said' },
        extra: { permanent: kept },
        options: { dir, run: { folder: dir, progress: 'plain' } },
      })
      assert.equal(code, 0, told)
      assert.doesNotMatch(told, /\.millrace\b.*(kept|removed)/)
    }
    assert.deepEqual(readdirSync(dir).toSorted(), ['.millrace', 'a', 'mine'])
    const runs = join(dir, '.millrace', 'runs')
    for (const name of readdirSync(runs)) {
      assert.ok(existsSync(join(runs, name, 'journal')))
      assert.equal(readFileSync(join(runs, name, 'logs', '1.1.log'), 'utf8'), 'said\n')
    }
  })
})
