import assert from 'node:assert/strict'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { jsonLines, makeFolder, millrace } from './folder.ts'
import type { Ended } from './folder.ts'
import { failing, squares } from './programs.ts'

describe('looking back', () => {
  const folder = makeFolder({ 'bad.mjs': failing, 'good.mjs': squares() })
  let failed: Ended
  const [good, bad] = ['', '']
  const names = { good, bad }

  before(async () => {
    await millrace(folder, ['run', 'good.mjs', '--progress', 'none'])
    names.good = readdirSync(join(folder, '.millrace/runs'))[0] ?? ''
    failed = await millrace(folder, ['run', 'bad.mjs', '--no-color'])
    names.bad = readdirSync(join(folder, '.millrace/runs')).find(name => name !== names.good) ?? ''
  })

  test('a run that failed says why, with the log tail and how to run it again', () => {
    assert.equal(failed.code, 1)
    assert.match(failed.stderr, /cause +RangeError: 42 is too large/)
    assert.match(failed.stderr, /output +1 line\n +\| looking at 42/)
    assert.match(failed.stderr, /rerun +millrace run .*bad\.mjs/)
  })

  test('runs lists the newest first', async () => {
    const { code, stdout } = await millrace(folder, ['runs'])
    assert.equal(code, 0)
    const [title = '', first = '', second = ''] = stdout.split('\n')
    assert.match(title, /^run +outcome +started +took +program$/)
    assert.match(first, new RegExp(`^${names.bad} +failed +.* bad\\.mjs$`))
    assert.match(second, new RegExp(`^${names.good} +ok +.* good\\.mjs$`))
    const json = jsonLines((await millrace(folder, ['runs', '--json'])).stdout)
    assert.deepEqual(
      json.map(run => [run['name'], run['outcome']]),
      [
        [names.bad, 'failed'],
        [names.good, 'ok'],
      ],
    )
  })

  test('show has outcome, kinds and failures', async () => {
    const { code, stdout } = await millrace(folder, ['show'])
    assert.equal(code, 0)
    assert.ok(stdout.startsWith(`failed ${names.bad} after `), stdout)
    assert.match(stdout, /^kind +tasks +ok +failed +retried +busy +mean +longest$/m)
    assert.match(stdout, /^check +1 +0 +1 +1 /m)
    assert.match(stdout, /^double +1 +1 +0 +0 /m)
    assert.match(stdout, /cause +RangeError: 42 is too large/)
    assert.match(stdout, /\| looking at 42/)
  })

  test('show takes a run by the start of its name, and writes traces, graphs and events', async () => {
    const part = names.good.slice(0, -1)
    const { stdout, stderr } = await millrace(folder, [
      'show',
      part,
      '--trace',
      't.json',
      '--graph',
      'g.dot',
      '--json',
    ])
    const events = jsonLines(stdout)
    assert.equal(events[0]?.['run'], names.good)
    assert.equal(events.at(-1)?.['type'], 'run-ended')
    assert.match(stderr, /trace written to t\.json/)
    JSON.parse(readFileSync(join(folder, 't.json'), 'utf8'))
    assert.match(readFileSync(join(folder, 'g.dot'), 'utf8'), /^digraph/)
  })

  test('story tells of both attempts', async () => {
    const { code, stdout } = await millrace(folder, ['story', 'check'])
    assert.equal(code, 0)
    assert.match(stdout, /it waited for version \d+.* of double#1, which came after/)
    assert.match(stdout, /it failed after .*, attempt 1: RangeError: 42 is too large/)
    assert.match(stdout, /it started again, attempt 2/)
    assert.match((await millrace(folder, ['story', 'square#2', names.good])).stdout, /square#2 was submitted/)
  })

  test('logs has what a task printed, on stdout, and what it says about it on stderr', async () => {
    const all = await millrace(folder, ['logs', 'check'])
    assert.deepEqual(all, {
      code: 0,
      stdout: 'looking at 42\nlooking at 42\n',
      stderr: 'attempt 1\nattempt 2\n',
    })
    const one = await millrace(folder, ['logs', 'check#2', names.bad, '--attempt', '2'])
    assert.equal(one.stdout, 'looking at 42\n')
    const none = await millrace(folder, ['logs', '1'])
    assert.deepEqual(none, { code: 0, stdout: '', stderr: 'double#1 printed nothing.\n' })
  })

  const wrong: [string[], RegExp][] = [
    [['story', 'chekc'], /no task `chekc`\n.*Did you mean check\?/],
    [['logs', 'chekc'], /no task `chekc`\n.*Did you mean check\?/],
    [['logs', 'double#2'], /Did you mean check#2\?/],
    [['logs', '99'], /numbered up to 2/],
    [['logs', 'check', '--attempt', '9'], /no log of attempt 9\n.*1, 2/],
    [['show', 'nobody-knows'], /no run `nobody-knows`/],
  ]
  for (const [args, said] of wrong) {
    test(`${args.join(' ')} is answered with a way out`, async () => {
      const { code, stdout, stderr } = await millrace(folder, args)
      assert.equal(stdout, '')
      assert.match(stderr, said)
      assert.match(stderr, /\[MR_JOURNAL\]\n$/)
      assert.equal(code, 2)
    })
  }

  test('a folder without runs says how to make one', async () => {
    const empty = makeFolder({})
    const listed = await millrace(empty, ['runs'])
    assert.deepEqual([listed.code, listed.stdout], [0, ''])
    assert.match(listed.stderr, /millrace run app\.ts/)
    const shown = await millrace(empty, ['show'])
    assert.equal(shown.code, 2)
    assert.match(shown.stderr, /there are no runs in/)
  })
})

test('what cannot be read of a damaged journal is told with every answer', async () => {
  const folder = makeFolder({ 'app.mjs': squares() })
  await millrace(folder, ['run', 'app.mjs', '--progress', 'none'])
  const path = join(folder, '.millrace/runs', readdirSync(join(folder, '.millrace/runs'))[0] ?? '', 'journal')
  const whole = readFileSync(path)
  // A block in the middle that does not match its checksum.
  const first = whole.subarray(12, 12 + 8 + whole.readUInt32LE(12))
  const damaged = Buffer.from(first)
  damaged[damaged.length - 1] = 255 - (damaged.at(-1) ?? 0)
  const rest = whole.subarray(12 + first.length)
  writeFileSync(path, Buffer.concat([whole.subarray(0, 12), first, damaged, rest, first.subarray(0, 20)]))
  const shown = await millrace(folder, ['show'])
  assert.equal(shown.code, 0)
  assert.match(shown.stdout, /The last \d.* of its journal cannot be read: it was cut or damaged there/)
  for (const args of [['story', 'square'], ['logs', 'square'], ['explain'], ['show', '--json']]) {
    const { stderr } = await millrace(folder, args)
    assert.match(stderr, /The last \d.* of its journal cannot be read/, args.join(' '))
  }
  writeFileSync(path, whole)
  assert.doesNotMatch((await millrace(folder, ['show'])).stdout, /cannot be read/)
})
