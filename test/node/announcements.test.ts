import assert from 'node:assert/strict'
import test from 'node:test'
import { Announcements } from '../../src/node/threads/announcements.ts'

/** After which of the results the coordinator is woken, when each task takes that long and no more are sent. */
function wokenAfter(tasks: number, milliseconds: number, awaited: number | null = null): number[] {
  const announcements = new Announcements()
  announcements.made(0)
  const woken: number[] = []
  for (let ended = 1; ended <= tasks; ended++) {
    const now = ended * milliseconds
    if (!announcements.isDue(now, tasks - ended, awaited !== null && ended <= awaited)) continue
    woken.push(ended)
    announcements.made(now)
  }
  return woken
}

test('given several tasks of some milliseconds, we should wake the coordinator when one is left to do, and for that', () => {
  assert.deepEqual(wokenAfter(5, 5), [4, 5])
  assert.deepEqual(wokenAfter(1, 5), [1])
  assert.deepEqual(wokenAfter(2, 5), [1, 2])
})

test('given short tasks, we should wake it while there is enough to do until it can have sent more', () => {
  const [first] = wokenAfter(40, 0.05)
  assert(first !== undefined && first > 15 && first < 25, String(first))
})

test('given tasks that someone waits for, or that take longer than was expected, we should not wait for others', () => {
  assert.deepEqual(wokenAfter(6, 5, 3), [1, 2, 3, 5, 6])
  assert.deepEqual(wokenAfter(6, 40), [1, 2, 3, 4, 5, 6])
})

test('given tasks that take next to nothing, we should not wake it for each, however few are left', () => {
  assert(wokenAfter(1000, 0.001).length < 10)
})
