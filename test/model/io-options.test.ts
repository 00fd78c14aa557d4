import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MillraceError, auto, task } from 'millrace'
import { evaluateBandwidth } from '../../src/model/options/bandwidth.ts'

const define = task as unknown as (options: object, run: () => void) => unknown

const WRONG: [title: string, options: object, code: string, message: RegExp][] = [
  ['io with CPUs', { io: true, cpus: 2 }, 'MR_OPTION', /both io and cpus/],
  ['io that is not true or false', { io: 1 }, 'MR_OPTION', /neither true nor false/],
  [
    'a bandwidth without "per second"',
    { io: true, bandwidth: '10GB' },
    'MR_UNIT',
    /'10GB', which is not a rate/,
  ],
  ['a mistyped bandwidth', { io: true, bandwidth: 'adaptiv' }, 'MR_UNIT', /did you mean 'adaptive'/],
  ['no bandwidth at all', { io: true, bandwidth: 0 }, 'MR_UNIT', /could never run/],
  ['a size that is a rate', { io: true, size: '1MB/s' }, 'MR_UNIT', /size is '1MB\/s'/],
  ['a third direction', { io: true, direction: 'both' }, 'MR_OPTION', /direction is 'both'/],
  ['a mistyped option', { io: true, bandwith: 1 }, 'MR_OPTION', /did you mean 'bandwidth'/],
]
for (const [title, options, code, message] of WRONG) {
  test(`${title} is refused where the task is defined`, () => {
    assert.throws(
      () => define(options, () => undefined),
      (error: unknown) => {
        assert.ok(error instanceof MillraceError)
        assert.equal(error.code, code)
        assert.match(error.message, message)
        return true
      },
    )
  })
}

test('a bandwidth is megabytes per second, a rate, a variable, a function, or learned', () => {
  process.env['SOME_RATE'] = '30MB/s'
  const values = [20, '20MB/s', '1GiB/s', '$SOME_RATE', (n: number) => n * 2, 'auto', 'adaptive']
  assert.deepEqual(
    values.map(value => evaluateBandwidth('t', value as never, [4])),
    [20e6, 20e6, 2 ** 30, 30e6, 8e6, 'auto', 'adaptive'],
  )
  assert.deepEqual(auto(2, '64MB/s', 3), { min: 2e6, max: 64e6, delta: 3 })
  assert.deepEqual(evaluateBandwidth('t', auto(1, 2), null), { min: 1e6, max: 2e6, delta: 2 })
  assert.throws(() => evaluateBandwidth('t', '$NOT_SET_ANYWHERE', []), /NOT_SET_ANYWHERE is not set/)
})

test('bounds of learning that do not go up are refused', () => {
  assert.throws(() => auto(8, 2), /do not go up/)
  assert.throws(() => auto(0, 2), /do not go up/)
  assert.throws(() => auto(1, 2, 1), /not above 1/)
})

test('bounds of a learned bandwidth can be written as text, also in the environment', () => {
  const bounds = { min: 10e6, max: 50e6, delta: 4 }
  assert.deepEqual(evaluateBandwidth('save', 'auto(10,50,4)', []), bounds)
  assert.deepEqual(evaluateBandwidth('save', 'auto( 10MB/s , 50MB/s, 4 )', []), bounds)
  assert.deepEqual(evaluateBandwidth('save', 'auto(10, 50)', []), { ...bounds, delta: 2 })
  process.env['TEST_BOUNDS'] = 'auto(10,50,4)'
  assert.deepEqual(evaluateBandwidth('save', '$TEST_BOUNDS', []), bounds)
  for (const wrong of ['auto(10)', 'auto(1,2,3,4)', 'auto(1,2,x)', 'auto(10,50', 'auto(50,10,2)']) {
    assert.throws(() => evaluateBandwidth('save', wrong, []), { name: 'MillraceError' }, wrong)
  }
})
