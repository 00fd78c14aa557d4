import assert from 'node:assert/strict'
import test from 'node:test'
import { shared, waitOn } from 'millrace'
import * as tasks from '../fixtures/tasks.ts'

const LENGTH = 1_000_000
const MOST = 300
/** So much less than what was made must be there, at some time. */
const FREED = 256e6

test('shared arrays that are not in use any more are freed while the program goes on', async () => {
  const before = process.memoryUsage().rss
  let freed = 0
  for (let i = 1; i <= MOST && freed < FREED; i++) {
    const array = shared(Float64Array, LENGTH)
    tasks.fill(array, i)
    const ends = await waitOn([tasks.lastOf(array), tasks.lastOf(array), tasks.lastOf(array)])
    assert.deepEqual(ends, [i, i, i])
    freed = i * LENGTH * 8 - (process.memoryUsage().rss - before)
  }
  assert(freed >= FREED, `of ${MOST * LENGTH * 8} bytes only ${freed} are gone`)
})
