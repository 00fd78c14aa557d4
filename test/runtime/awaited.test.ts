import assert from 'node:assert/strict'
import test from 'node:test'
import { barrier, waitOn } from 'millrace'
import { isAwaited, isAwaitedNow } from '../fixtures/awaited.ts'
import './embedded.ts'

test('given a task that runs, we should tell its thread when the program begins to wait for it', async () => {
  const result = isAwaited(0)
  await new Promise(go => setTimeout(go, 50))
  assert.equal(await waitOn(result), true)
})

test('given a task that is sent when the program waits for it already, its thread should know from the beginning', async () => {
  assert.equal(await waitOn(isAwaitedNow(isAwaitedNow(0))), true)
})

test('given a task that nobody waits for, its thread should not hurry', async () => {
  const result = isAwaitedNow(isAwaitedNow(0))
  await barrier()
  assert.equal(await waitOn(result), false)
})
