import assert from 'node:assert/strict'
import test from 'node:test'
import { waitOn } from 'millrace'
import * as tasks from '../fixtures/returning-tasks.ts'
import { rejection, thrown } from './embedded.ts'

test('the number of returned values may depend on the arguments', async () => {
  const list = [1, 2, 3, 4, 5, 6, 7]
  for (const parts of [1, 3, 2, 3]) {
    const futures = tasks.split(list, parts)
    assert.equal(futures.length, parts)
    const expected = Array.from({ length: parts }, (_, i) => list.filter((_, k) => k % parts === i))
    assert.deepEqual(await waitOn(futures), expected)
  }
})

test('such values are released early, beside a parameter that is written', async () => {
  const log: number[] = []
  const first = tasks.release(log, 2)
  const second = tasks.release(log, 4)
  assert.deepEqual(await waitOn([...first, ...second]), [0, 1, 0, 1, 4, 9])
  await waitOn(log)
  assert.deepEqual(log, [2, 4])
})

test('a task calls tasks that return as many values as it says', async () => {
  assert.deepEqual(await waitOn([tasks.nested(1), tasks.nested(4)]), [45, 45])
})

test('an array of another length is an error that names the number', async () => {
  const [future] = tasks.tooFew(3)
  const error = await rejection(waitOn(future))
  assert.match(error.message, /tooFew\[3\] has returns: 3, but returned an array of 2/)
})

test('a number that cannot be meant is refused at the call', () => {
  for (const [parts, said] of [
    [0, '0'],
    [1.5, '1.5'],
    ['2', 'string'],
    [tasks.sum([1]), 'object'],
  ] as const) {
    const error = thrown(() => tasks.split([1], parts as number))
    assert.equal(error.code, 'MR_OPTION')
    assert.match(error.message, new RegExp(`split: returns gives ${said} for these arguments`))
  }
  assert.match(thrown(() => tasks.split.map([[1]], 2)).message, /cannot be mapped/)
})
