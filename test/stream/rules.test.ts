import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { add, assertClean, permanent, pipe, read, run, toolsOrReason } from './support.ts'

const { skip } = await toolsOrReason()

describe('rules in a running workflow', { skip, timeout: 120_000 }, () => {
  afterEach(assertClean)

  test('a directory is listed when its number of files is there', async () => {
    const stages = {
      split: { out: ['parts'], rules: [{ dirname: 'parts', committed: 'on_n_files', n_files: 3 }] },
      join: { in: ['parts'], out: ['sum'] },
    }
    const steps = {
      split: 'mkdir parts; for i in 1 2 3; do sleep 0.05; echo $i > parts/$i; done; sleep 0.1',
      join: 'cat parts/* > sum',
    }
    const { code, place, told } = await run({ stages, steps, extra: { permanent } })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'sum'), '1\n2\n3\n')
  })

  test('directories that a pattern names', async () => {
    const stages = {
      split: { out: ['in{1,2}'], rules: [{ dirname: 'in*', committed: 'on_n_files', n_files: 2 }] },
      join: { in: ['in{1,2}'], out: ['sum'] },
    }
    const split =
      'mkdir in1 in2; for i in 1 2; do sleep 0.05; echo $i > in1/$i; echo $i > in2/$i; done; sleep 0.1'
    const { code, place, told } = await run({
      stages,
      steps: { split, join: 'cat in1/* in2/* > sum' },
      extra: { permanent },
    })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'sum'), '1\n2\n1\n2\n')
  })

  const directories: [name: string, output: string][] = [
    ['that nothing shows to be one', 'parts'],
    ['that is written with a slash', 'parts/'],
    ['that other names lie in', 'parts", "parts/2'],
  ]
  for (const [name, output] of directories) {
    test(`a directory without a rule, ${name}, is complete when its writer ends`, async () => {
      const stages = { split: { out: output.split('", "') }, join: { in: ['parts'], out: ['sum'] } }
      const split =
        'sleep 0.1; mkdir parts; for i in 1 2 3; do sleep 0.05; echo $i > parts/$i; done; sleep 0.1'
      const { code, place, told } = await run({
        stages,
        steps: { split, join: 'cat parts/* > sum' },
        extra: { permanent },
      })
      assert.equal(code, 0, told)
      assert.equal(read(place, 'sum'), '1\n2\n3\n')
    })
  }

  test('a file without a rule is read when its writer has ended', async () => {
    const stages = { make: { out: ['numbers'] }, add: pipe['add']! }
    const steps = { make: 'for i in 1 2 3; do echo $i >> numbers; sleep 0.05; done', add }
    const { code, place, told } = await run({ stages, steps, extra: { permanent } })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'sum'), '6\n')
  })

  test('a file is complete with another', async () => {
    const rules = [
      { name: 'numbers', committed: 'on_file', file_deps: ['ready'] },
      { name: 'ready', committed: 'on_close' },
    ]
    const stages = { make: { out: ['numbers', 'ready'], rules }, add: pipe['add']! }
    const steps = {
      make: 'for i in 1 2 3; do echo $i >> numbers; sleep 0.05; done; : > ready; sleep 0.1',
      add,
    }
    const { code, place, told } = await run({ stages, steps, extra: { permanent } })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'sum'), '6\n')
  })
})
