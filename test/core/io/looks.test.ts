import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Learning } from '../../../src/core/io/learning.ts'
import { Looks } from '../../../src/core/io/looks.ts'
import type { Task } from '../../../src/core/tasks/task.ts'

/** A search that takes down what it is told. */
function listener(): { learning: Learning; rates: number[] } {
  const rates: number[] = []
  const learning = { wantsRates: true, writesAt: (rate: number) => rates.push(rate) }
  return { learning: learning as unknown as Learning, rates }
}

const task = { id: 1 } as Task

test('the rate of a file that grows should be told once it has grown a few times', () => {
  const looks = new Looks()
  const { learning, rates } = listener()
  looks.watch(task, learning, 0)
  for (let i = 1; i <= 4; i++) {
    assert.deepEqual(looks.due(i * 10), [task])
    assert.deepEqual(rates, [])
    looks.seen(task, i * 200_000, i * 10)
  }
  assert.deepEqual(rates, [20_000])
  assert(!looks.any)
})

test('a header, and a task that has not begun to write, should tell nothing', () => {
  const looks = new Looks()
  const { learning, rates } = listener()
  looks.watch(task, learning, 0)
  for (let i = 1; i <= 50; i++) looks.seen(task, 0, i * 10)
  for (let i = 1; i <= 20; i++) looks.seen(task, i * 100, 500 + i * 10)
  assert.deepEqual(rates, [])
  assert(looks.any)
})

test('a long task should be looked at less and less often', () => {
  const looks = new Looks()
  looks.watch(task, listener().learning, 0)
  let count = 0
  while (looks.next < 3_600_000) count += looks.due(looks.next).length
  assert(count < 250, String(count))
})

test('a task that has ended, or whose search has begun, should not be looked at', () => {
  const looks = new Looks()
  const { learning } = listener()
  looks.watch(task, learning, 0)
  looks.drop(task)
  assert(!looks.any)
  looks.watch(task, learning, 0)
  Object.assign(learning, { wantsRates: false })
  assert.deepEqual(looks.due(10), [])
  assert(!looks.any)
})
