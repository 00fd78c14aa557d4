import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { add, assertClean, folderOf, permanent, pipe, read, run, toolsOrReason } from './support.ts'

const { skip } = await toolsOrReason()

describe('rules in a running workflow', { skip, timeout: 300_000 }, () => {
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

  test('a directory without a rule that is there before its reader looks is complete when its writer ends', async () => {
    const stages = { split: { out: ['parts'] }, join: { in: ['parts'], out: ['sum'] } }
    const split = `mkdir parts; echo 1 > parts/1; : > $MILLRACE_PLACE/made
      until [ -e $MILLRACE_PLACE/looks ]; do sleep 0.02; done; sleep 0.1; echo 2 > parts/2`
    const join = `until [ -e $MILLRACE_PLACE/made ]; do sleep 0.02; done
      : > $MILLRACE_PLACE/looks; cat parts/* > sum`
    const { code, place, told } = await run({ stages, steps: { split, join }, extra: { permanent } })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'sum'), '1\n2\n')
  })

  for (const rules of [[], [{ name: 's*', committed: 'on_close', mode: 'no_update' }]])
    test(`a step waits for the names of a pattern although it writes one itself (${rules.length} rules)`, async () => {
      const stages = { split: { out: ['s*'], rules }, join: { in: ['s*'], out: ['sum'] } }
      const steps = { split: 'for i in 1 2; do sleep 0.1; echo $i > s$i; done', join: 'cat s1 s2 > sum' }
      const { code, place, told } = await run({ stages, steps, extra: { permanent } })
      assert.equal(code, 0, told)
      assert.equal(read(place, 'sum'), '1\n2\n')
    })

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

  const waits: [name: string, rule: Record<string, unknown>, make: string, sum: string][] = [
    [
      'closed twice',
      { committed: 'on_close:2' },
      'seq 3 > numbers; sleep 0.1; seq 3 >> numbers; sleep 0.1',
      '12',
    ],
    [
      'closed twice, read as it grows',
      { committed: 'on_close:2', mode: 'no_update' },
      'seq 3 > numbers; sleep 0.1; seq 3 >> numbers',
      '12',
    ],
    [
      'ended',
      { committed: 'on_termination', mode: 'no_update' },
      'seq 3 > numbers; sleep 0.1; seq 3 >> numbers; sleep 0.1',
      '12',
    ],
    ['ended, children too', {}, '(sleep 0.1; seq 3 >> numbers) & seq 3 > numbers', '12'],
  ]
  for (const [name, rule, make, sum] of waits) {
    test(`a file is complete when its writer has ${name}`, async () => {
      const stages = { make: { out: ['numbers'], rules: [{ name: 'numbers', ...rule }] }, add: pipe['add']! }
      const { code, place, told } = await run({ stages, steps: { make, add }, extra: { permanent } })
      assert.equal(code, 0, told)
      assert.equal(read(place, 'sum'), `${sum}\n`)
    })
  }

  test('one of two writers is enough when the rule says so', async () => {
    const rules = [{ name: 'numbers', committed: 'on_termination:1' }]
    const stages = { make: { out: ['numbers'], rules }, other: { out: ['numbers'] }, add: pipe['add']! }
    const done = folderOf({})
    const steps = {
      make: 'seq 3 > numbers',
      other: `while [ ! -e ${done}/sum ]; do sleep 0.02; done`,
      add: `${add}; : > ${done}/sum`,
    }
    const { code, place, told } = await run({ stages, steps, extra: { permanent } })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'sum'), '6\n')
  })

  test('a group has one rule for all its files', async () => {
    const rules = [{ name: 'group0', committed: 'on_close', mode: 'no_update' }]
    const stages = { make: { out: ['group0'], rules }, join: { in: ['group0'], out: ['sum'] } }
    const extra = { permanent, aliases: [{ group_name: 'group0', files: ['x1', 'y1'] }] }
    const make = 'sleep 0.1; echo 1 > x1; sleep 0.1; echo 2 > y1; sleep 0.1'
    const { code, place, told } = await run({ stages, steps: { make, join: 'cat x1 y1 > sum' }, extra })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'sum'), '1\n2\n')
  })

  test('no step waits for what no rule names, or what is excluded', async () => {
    const stages = { make: { out: ['numbers', 'log.txt'] }, add: pipe['add']! }
    const steps = {
      make: 'sleep 0.3; seq 3 > numbers; echo > log.txt',
      add: `cat unknown; cat log.txt; ${add}`,
    }
    const { code, said, told } = await run({ stages, steps, extra: { permanent, exclude: ['*.txt'] } })
    assert.equal(code, 0, told)
    assert.match(said + told, /add {2}\| cat: unknown: No such file/)
    assert.match(said + told, /add {2}\| cat: log.txt: No such file/)
  })

  test('a wait that lasts too long fails', async () => {
    const done = folderOf({})
    const steps = {
      make: `while [ ! -e ${done}/gave-up ]; do sleep 0.02; done; seq 3 > numbers`,
      add: `cat numbers; code=$?; : > ${done}/gave-up; exit $code`,
    }
    const { code, told } = await run({ stages: pipe, steps, options: { limit: 0.3 } })
    assert.equal(code, 1)
    assert.match(told, /step 'add' failed/)
    assert.match(told, /timed out/i)
  })
})
