import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Implementation } from '../../src/core/tasks/task.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { measuredBy, stepTimesOf } from '../../src/node/steps.ts'

function taskWith(took: number, ended: number, hasFiles = false): Task {
  const implementation = new Implementation('f')
  for (let i = 0; i < ended; i++) implementation.record(took)
  const attempt = { fetched: hasFiles ? { at: 0, took: 1 } : null }
  return { implementation, payload: { attempt } } as unknown as Task
}

const countOf = (how: 'off' | 'on' | 'all', task: Task): number => {
  const isMeasured = measuredBy(how)
  return Array.from({ length: 6400 }).filter(() => isMeasured(task)).length
}

test('of short tasks one in 64 is measured, once many of their kind have ended', () => {
  assert.equal(countOf('on', taskWith(0.01, 2000)), 100)
  assert.equal(countOf('on', taskWith(0.01, 500)), 6400)
  assert.equal(countOf('on', taskWith(1, 2000)), 6400)
  assert.equal(countOf('on', taskWith(0.01, 2000, true)), 6400)
})

test('all are measured, or none, where that is asked for', () => {
  assert.equal(countOf('all', taskWith(0.01, 2000)), 6400)
  assert.equal(countOf('off', taskWith(1, 10)), 0)
  assert.deepEqual(
    [true, false, 'all' as const, undefined].map(option => stepTimesOf(option)),
    ['on', 'off', 'all', 'off'],
  )
})
