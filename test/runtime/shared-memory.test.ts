import assert from 'node:assert/strict'
import test from 'node:test'
import { shared, waitOn } from 'millrace'
import * as tasks from '../fixtures/tasks.ts'

test('shared arrays that nobody has any more are freed while the program goes on', async () => {
  const before = process.memoryUsage().rss
  let peak = 0
  for (let i = 0; i < 60; i++) {
    const array = shared(Float64Array, 4_000_000)
    tasks.fill(array, i)
    const ends = await waitOn([tasks.lastOf(array), tasks.lastOf(array), tasks.lastOf(array)])
    assert.deepEqual(ends, [i, i, i])
    peak = Math.max(peak, process.memoryUsage().rss - before)
  }
  // All of them together have 1.9 GB.
  assert(peak < 1e9, `${peak} bytes at once`)
})
