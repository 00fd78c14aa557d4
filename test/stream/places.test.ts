import assert from 'node:assert/strict'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import type { StreamRunOptions } from '../../src/runtime/streams/stream-run.ts'
import { add, assertClean, folderOf, permanent, pipe, read, run, toolsOrReason } from './support.ts'

const { skip } = await toolsOrReason()

describe('where files live', { skip, timeout: 300_000 }, () => {
  afterEach(assertClean)

  test('in a directory of the user: permanent files stay, temporary ones go, older ones are not touched', async () => {
    const dir = folderOf({ 'notes.txt': 'mine', 'logs/old.log': 'old' })
    const stages = { ...pipe, make: { ...pipe['make']!, out: ['numbers', 'logs'] } }
    const steps = { make: 'seq 10 > numbers; echo x > logs/new.log', add }
    const { code, told } = await run({ stages, steps, extra: { permanent }, options: { dir } })
    assert.equal(code, 0, told)
    assert.deepEqual(readdirSync(dir, { recursive: true }).toSorted(), [
      'logs',
      'logs/old.log',
      'notes.txt',
      'sum',
    ])
    assert.equal(read(dir, 'sum'), '55\n')
  })

  test('inputs of the place are seen in the managed directory', async () => {
    const stages = { make: { in: ['raw/*.txt', 'one.csv'], out: ['sum'] } }
    const files = { 'raw/a.txt': 'a\n', 'raw/b.txt': 'b\n', 'raw/c.md': 'c\n', 'one.csv': '1\n' }
    const { code, place } = await run({
      stages,
      steps: { make: 'cat raw/* one.csv > sum' },
      files,
      extra: { permanent },
    })
    assert.equal(code, 0)
    assert.equal(read(place, 'sum'), 'a\nb\n1\n')
    assert.deepEqual(readdirSync(join(place, 'raw')).toSorted(), ['a.txt', 'b.txt', 'c.md'])
  })

  const placing: [
    name: string,
    extra: Record<string, unknown>,
    options: StreamRunOptions,
    storage: RegExp,
  ][] = [
    ['memory runs short', {}, { reserve: 1e15 }, /moved to another layer/],
    ['storage says fs', { storage: { fs: ['numbers'] } }, {}, /1 file moved/],
  ]
  for (const [name, extra, options, storage] of placing) {
    test(`complete files move to disk and are read all the same when ${name}`, async () => {
      // The reader waits for a word from outside, so that the move surely comes first.
      const go = folderOf({})
      const stages = {
        ...pipe,
        make: { out: ['numbers'], rules: [{ name: 'numbers', committed: 'on_close' }] },
      }
      const steps = {
        make: 'seq 1 1000 > numbers',
        add: `until LD_PRELOAD= /usr/bin/test -L numbers; do sleep 0.02; done; ${add}; echo > ${go}/done`,
      }
      const { code, place, told } = await run({ stages, steps, extra: { permanent, ...extra }, options })
      assert.equal(code, 0, told)
      assert.equal(read(place, 'sum'), '500500\n')
      assert.match(told, storage)
    })
  }

  test('permanent files are in their place as soon as they are complete', async () => {
    const place = folderOf({})
    const stages = {
      ...pipe,
      make: { out: ['numbers'], rules: [{ name: 'numbers', committed: 'on_close' }] },
    }
    const steps = {
      make: 'seq 1 4 > numbers',
      add: `while [ ! -e ${place}/numbers ]; do sleep 0.02; done; ${add}`,
    }
    const { code, told } = await run({
      stages,
      steps,
      extra: { permanent: ['numbers', 'sum'] },
      options: { place },
    })
    assert.equal(code, 0, told)
    assert.deepEqual(readdirSync(place).toSorted(), ['numbers', 'sum'])
  })

  test('permanent files are kept whatever bytes their names are made of, and however long they are', async () => {
    const long = '\u754c'.repeat(80)
    const names = ["$(printf 'bad\\377\\302')", "$(printf 'new\\nline')", 'x*[y] z', long]
    const lines = names.map(name => `echo data > "out/${name}"`)
    const { code, place, told } = await run({
      stages: { make: { out: ['out'] } },
      steps: { make: `mkdir out; ${lines.join('; ')}` },
      extra: { permanent: ['out/*'] },
    })
    assert.equal(code, 0, told)
    const kept = readdirSync(join(place, 'out'), 'latin1').map(name => Buffer.from(name, 'latin1'))
    const expected = [
      Buffer.from('bad\xff\xc2', 'latin1'),
      ...['new\nline', 'x*[y] z', long].map(name => Buffer.from(name)),
    ]
    assert.deepEqual(kept.toSorted(Buffer.compare), expected.toSorted(Buffer.compare))
    for (const name of kept)
      assert.equal(readFileSync(Buffer.concat([Buffer.from(`${place}/out/`), name]), 'utf8'), 'data\n')
  })

  test('a managed directory with a name that is too long is refused', async () => {
    const dir = join(folderOf({}), ...Array.from({ length: 6 }, () => 'd'.repeat(200)))
    const { code, told } = await run({
      stages: pipe,
      steps: { make: 'seq 3 > numbers', add },
      options: { dir },
    })
    assert.equal(code, 1)
    assert.match(told, /the name of the managed directory has \d+ bytes, and may have 1000 at most/)
  })

  test('a permanent file that cannot be brought to its place is left, and it is said where', async () => {
    const { code, told } = await run({
      stages: pipe,
      steps: { make: 'seq 3 > numbers', add },
      files: { 'sum/in-the-way': '' },
      extra: { permanent },
    })
    assert.equal(code, 1)
    const dir = /sum could not be brought to .*; it is left in (\S+)/.exec(told)?.[1]
    assert.ok(dir !== undefined, told)
    assert.equal(read(dir, 'sum'), '6\n')
    rmSync(dirname(dir), { recursive: true })
  })

  test('temporary files are left when asked for', async () => {
    const { code, told } = await run({
      stages: pipe,
      steps: { make: 'seq 3 > numbers', add },
      options: { keep: true },
    })
    assert.equal(code, 0)
    const dir = /temporary files are left in (\S+)/.exec(told)![1]!
    assert.equal(read(dir, 'numbers'), '1\n2\n3\n')
    rmSync(dirname(dir), { recursive: true })
  })

  test('the directory of a run that was killed is removed by the next one', async () => {
    const left = '/dev/shm/millrace-dir.' + process.getuid!() + '.' + process.pid + '.1.killed'
    mkdirSync(join(left, 'files'), { recursive: true })
    const kept = '/dev/shm/millrace-dir.' + process.getuid!() + '.' + process.pid + '.1.kept'
    mkdirSync(join(kept, 'files'), { recursive: true })
    writeFileSync(join(kept, 'keep'), '')
    await run({ stages: pipe, steps: { make: 'seq 3 > numbers', add } })
    assert.equal(existsSync(left), false)
    assert.equal(existsSync(kept), true)
    rmSync(kept, { recursive: true })
  })

  test('a permanent file that was held in memory is a plain file in its place again', async () => {
    const dir = folderOf({})
    const stages = {
      ...pipe,
      make: { out: ['numbers'], rules: [{ name: 'numbers', committed: 'on_close' }] },
    }
    const steps = {
      make: 'seq 1 4 > numbers',
      add: `until LD_PRELOAD= /usr/bin/test -L numbers; do sleep 0.02; done; ${add}`,
    }
    const extra = { permanent: ['numbers', 'sum'], storage: { memory: ['numbers'] } }
    const { code, told } = await run({ stages, steps, extra, options: { dir } })
    assert.equal(code, 0, told)
    assert.ok(lstatSync(join(dir, 'numbers')).isFile())
    assert.equal(read(dir, 'numbers'), '1\n2\n3\n4\n')
  })

  test('what was moved and is permanent is kept, wherever the layer lies', async () => {
    // The folder of layers lies below the place here, as that of inputs does.
    const stages = {
      ...pipe,
      make: { out: ['numbers'], rules: [{ name: 'numbers', committed: 'on_close' }] },
    }
    const steps = {
      make: 'seq 1 4 > numbers',
      add: `until LD_PRELOAD= /usr/bin/test -L numbers; do sleep 0.02; done; ${add}`,
    }
    const extra = { permanent: ['numbers'], storage: { fs: ['numbers'] } }
    const place = folderOf({})
    const before = process.env['TMPDIR']
    process.env['TMPDIR'] = place
    const { code, told } = await run({ stages, steps, extra, options: { place } })
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
    assert.equal(code, 0, told)
    assert.equal(read(place, 'numbers'), '1\n2\n3\n4\n')
  })

  test('absolute names of the managed directory work as relative ones do', async () => {
    const dir = folderOf({})
    const numbers = join(dir, 'numbers')
    const stages = {
      make: { out: [numbers], rules: [{ name: numbers, committed: 'on_close', mode: 'no_update' }] },
      add: { in: [numbers, '/etc/hostname'], out: [join(dir, 'sum')] },
    }
    const steps = { make: 'sleep 0.1; seq 3 > numbers', add }
    const { code, told } = await run({
      stages,
      steps,
      extra: { permanent: [join(dir, 's*')] },
      options: { dir },
    })
    assert.equal(code, 0, told)
    assert.deepEqual(readdirSync(dir), ['sum'])
    const elsewhere = await run({ stages, steps, extra: { permanent: [join(dir, 's*')] } })
    assert.equal(elsewhere.code, 2)
    assert.match(
      elsewhere.told,
      /Config\.json:\d+:\d+: error: .*numbers' is not in the managed directory[^]*--dir/,
    )
  })
})
