import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { type RunOptions } from '../../src/stream/index.ts'
import { add, assertClean, folderOf, permanent, pipe, read, run, toolsOrReason } from './support.ts'

const { skip } = await toolsOrReason()

describe('where files live', { skip, timeout: 120_000 }, () => {
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

  const placing: [name: string, extra: Record<string, unknown>, options: RunOptions, storage: RegExp][] = [
    ['memory runs short', {}, { reserve: 1e15 }, /moved to another layer/],
    ['storage says fs', { storage: { fs: ['numbers'] } }, {}, /1 complete file moved/],
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
        add: `while [ ! -L numbers ]; do sleep 0.02; done; ${add}; echo > ${go}/done`,
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
})
