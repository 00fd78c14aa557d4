import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { streamRun } from '../../src/runtime/streams/stream-run.ts'
import {
  add,
  assertClean,
  configOf,
  folderOf,
  permanent,
  pipe,
  read,
  run,
  streamsOf,
  toolsOrReason,
} from './support.ts'

const { skip } = await toolsOrReason()

describe('millrace stream run', { skip, timeout: 300_000 }, () => {
  afterEach(assertClean)

  test('a reader started before its writer gets all of it', async () => {
    const steps = { make: 'sleep 0.2; for i in 1 2 3 4; do seq 1 1000; sleep 0.05; done > numbers', add }
    const { code, place, told } = await run({ stages: pipe, steps, extra: { permanent } })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'sum'), '2002000\n')
    assert.equal(existsSync(join(place, 'numbers')), false)
    assert.match(told, /^done \S+ after /m)
    assert.match(told, /tasks +2 ok, of 2/)
    assert.match(told, /kept in .*: sum\n/)
    assert.match(told, /1 temporary file removed/)
  })

  test('what steps print carries their name', async () => {
    const { said } = await run({
      stages: pipe,
      steps: { make: 'seq 3 > numbers; echo made', add: 'cat numbers' },
    })
    assert.match(said, /^make \| made$/m)
    assert.match(said, /^add {2}\| 3$/m)
  })

  test('a failed writer: its reader gets EIO, and the report says why', async () => {
    const steps = {
      make: 'seq 1 5 > numbers.tmp; (echo 1; exec sleep 0.2; ) > numbers & wait; echo broken >&2; exit 7',
      add,
    }
    const stages = {
      ...pipe,
      make: {
        out: ['numbers'],
        rules: [{ name: 'numbers', committed: 'on_termination', mode: 'no_update' }],
      },
    }
    const { code, place, told } = await run({ stages, steps, extra: { permanent } })
    assert.equal(code, 1)
    assert.match(told, /failed make#1[^]*ended with exit code 7[^]*\n {2}\| broken\n/)
    assert.match(told, /failed add#2/)
    assert.match(told, /step 'make' failed: reader 'add' of numbers got EIO and ended with code/)
    assert.match(told, /step 'add' failed: after 'make' had failed, from which it reads/)
    assert.ok(told.indexOf("step 'make' failed") < told.indexOf("step 'add' failed"))
    assert.equal(existsSync(join(place, 'sum')), false)
  })

  test('a program that is not there is named', async () => {
    const { code, told } = await run({ stages: pipe, steps: { make: ['no-such-program'], add } })
    assert.equal(code, 1)
    assert.match(told, /step 'make' failed: its program was not found/)
  })

  test('stopped by the user: exit code 130 and nothing left', async () => {
    const abort = new AbortController()
    const started = folderOf({})
    const watch = setInterval(() => {
      if (existsSync(join(started, 'yes'))) abort.abort()
    }, 20)
    const steps = { make: `(trap '' TERM; touch ${started}/yes; while :; do sleep 1; done) & wait`, add }
    const { code, told } = await run({
      stages: pipe,
      steps,
      signal: abort.signal,
    })
    clearInterval(watch)
    assert.equal(code, 130)
    assert.match(told, /stopping 2 steps/)
    assert.match(told, /^interrupted \S+ after /m)
  })

  test('several instances of a step', async () => {
    const stages = { work: { out: ['out*'] }, join: { in: ['out*'], out: ['sum'] } }
    const commands = [
      { step: 'work', run: 'echo $MILLRACE_INSTANCE > out$MILLRACE_INSTANCE', times: 3 },
      { step: 'join', run: 'cat out0 out1 out2 > sum' },
    ]
    const { code, place, told } = await run({ stages, steps: {}, commands, extra: { permanent } })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'sum'), '0\n1\n2\n')
    assert.match(told, /tasks +4 ok, of 4/)
  })

  test('steps and commands must fit', async () => {
    const missing = await run({ stages: pipe, steps: { make: 'true' } })
    assert.equal(missing.code, 2)
    assert.match(missing.told, /no command is given for 'add'/)
    assert.match(missing.told, /--step add='command'/)
    const unknown = await run({ stages: pipe, steps: { make: 'true', ad: 'true' } })
    assert.equal(unknown.code, 2)
    assert.match(unknown.told, /no step 'ad'[^]*did you mean 'add'/)
  })

  test('a mistake in the configuration stops it before anything starts', async () => {
    const { code, place, told } = await run({
      stages: { make: { out: ['x'], rules: [{ name: 'x', mode: 'y' }] } },
      steps: { make: 'touch ran' },
    })
    assert.equal(code, 2)
    assert.match(told, /Config\.json:\d+:\d+: error: IO_Graph\[0\]\.streaming\[0\]\.mode: /)
    assert.equal(existsSync(join(place, 'ran')), false)
  })

  test('two runs of one configuration side by side', async () => {
    const steps = { make: 'for i in 1 2 3; do echo $i; sleep 0.05; done > numbers', add }
    const both = await Promise.all([1, 2].map(() => run({ stages: pipe, steps, extra: { permanent } })))
    for (const { code, place } of both) {
      assert.equal(code, 0)
      assert.equal(read(place, 'sum'), '6\n')
    }
  })

  test('steps that wait for each other end with a reason', async () => {
    const stages = { a: { in: ['y'], out: ['x'] }, b: { in: ['x'], out: ['y'] } }
    const { code, told } = await run({ stages, steps: { a: 'cat y > x', b: 'cat x > y' } })
    assert.equal(code, 1)
    assert.match(told, /failed/)
  })

  test('the live view paints within the terminal', async () => {
    const place = folderOf({ 'Config.json': configOf(pipe, { permanent }) })
    const painted: string[] = []
    const err = (text: string): void => {
      painted.push(text)
      // Now that a line of the stream with its rate was painted, the writer may end.
      if (/numbers make > add.*\/s/.test(text)) writeFileSync(join(place, 'painted'), '')
    }
    const io = { out: () => {}, err }
    const streams = streamsOf(io, { isTTY: true, columns: 80, rows: 10 })
    const commands = [
      {
        step: 'make',
        run: 'until [ -e $MILLRACE_PLACE/painted ]; do seq 1 30000; sleep 0.02; done > numbers',
      },
      { step: 'add', run: add },
    ]
    writeFileSync(join(place, 'unrelated'), '')
    const options = { place, interval: 20, run: { folder: place, progress: 'live' } }
    assert.equal(await streamRun(join(place, 'Config.json'), commands, options, streams), 0)
    const text = painted.join('')
    assert.match(text, /numbers make > add, .*B\/s/)
    // The lines of the summary are not painted again: they may be longer.
    const block = text.slice(0, text.search(/kept in /))
    for (const line of block.split('\n')) assert.ok(stripVTControlCharacters(line).length <= 79, line)
  })
})
