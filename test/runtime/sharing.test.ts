import assert from 'node:assert/strict'
import test from 'node:test'
import { waitOn } from 'millrace'
import * as tasks from '../fixtures/sharing-tasks.ts'
import type { Element } from '../fixtures/sharing-tasks.ts'
import { rejection } from './embedded.ts'

/** Lists whose elements are data of their own, and what they have in common. */

// Without main, classes are known from the first wait on.
await tasks.numbers([])

const LARGE = 5000

for (const size of [4, LARGE]) {
  const make = (n: number): Element => ({ n, own: { n }, data: new Float64Array(size).fill(n) })

  for (const which of Object.keys(tasks.changes)) {
    test(`a task is told when an element of a list ${which} (arrays of ${size})`, async () => {
      const list = [make(1), make(2)]
      for (const each of list) tasks.double(each)
      const error = await rejection(tasks.change(list, which))
      assert.equal(error.cause.code, 'MR_ALIAS')
      // A task that leaves the elements apart is none the worse.
      const good = [make(1), make(2)]
      const [one, other] = good
      for (const each of good) tasks.double(each)
      tasks.change(good, 'nothing')
      await waitOn(good)
      assert(good[0] === one && good[1] === other)
      assert.deepEqual([one?.n, other?.n], [3, 5])
    })
  }

  test(`a task that reads a list meets each object once (arrays of ${size})`, async () => {
    const [a, b, c] = [make(1), make(2), make(3)]
    const common = { n: 5 }
    for (const each of [a, b, c]) assert.equal(await tasks.number(each), each.n)
    const list = [a, b, c, common]
    assert.equal(await tasks.distinct(list), 11)
    a.next = b
    assert.equal(await tasks.distinct(list), 11)
    b.next = common
    assert.equal(await tasks.distinct(list), 11)
    c.data = a.data as Float64Array
    assert.equal(await tasks.distinct(list), 10)
    c.next = list
    assert.equal(await tasks.distinct(list), 10)
    // As it is at each call.
    common.n = 6
    a.n = 7
    assert.deepEqual(await tasks.numbers(list), [7, 2, 3, 6])
    tasks.double(a.own as Element)
    assert.equal(await waitOn(a.own), a.own)
    assert.equal(await tasks.distinct(list), 10)
  })
}

test('a task that replaces a list of elements by another with the same elements is told', async () => {
  const list = [[{ n: 1 }, { n: 2 }]]
  for (const each of list[0] ?? []) tasks.double(each)
  const error = await rejection(tasks.renew(list))
  assert.equal(error.cause.code, 'MR_ALIAS')
})

test('a task that adds an element to a list that is an element is told', async () => {
  const [long, other]: unknown[][] = [Array.from({ length: 100 }, (_, i) => i), [{ n: 1 }]]
  // A thread keeps such a list, and is sent what was added.
  for (let i = 0; i < 3; i++) tasks.count(long as unknown[])
  tasks.count(other as unknown[])
  const error = await rejection(tasks.grow([long, other] as unknown[][]))
  assert.equal(error.cause.code, 'MR_ALIAS')
})
