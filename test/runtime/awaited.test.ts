import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { barrier, group, waitOn } from 'millrace'
import { handOn, isAwaited, isAwaitedNow, noteIfAwaited, read } from '../fixtures/awaited.ts'
import { wait } from '../fixtures/tasks.ts'
import type { Gate } from '../fixtures/tasks.ts'
import { newGate, open, reached } from './gates.ts'
import { until } from './embedded.ts'

let gate: Gate
// Where a CPU is idle, all results are awaited.
beforeEach(async () => {
  gate = newGate()
  wait(gate, 0)
  await reached(gate)
})
afterEach(async () => {
  open(gate)
  await barrier()
})

test('given a task that runs, we should tell its thread when the program begins to wait for it', async () => {
  const result = isAwaited(0)
  await new Promise(go => setTimeout(go, 50))
  assert.equal(await waitOn(result), true)
})

test('given a task that is sent when the program waits for it already, its thread should know from the beginning', async () => {
  assert.equal(await waitOn(isAwaitedNow(isAwaitedNow(0))), true)
})

test('given a task that goes as a message, its thread should know that the program waits for it', async () => {
  assert.equal(await waitOn(isAwaitedNow('x'.repeat(200_000))), true)
})

test('given a task that is not waited for, its thread should not hurry', async () => {
  const note = newGate()
  noteIfAwaited(isAwaitedNow(0), note)
  await until(() => Atomics.load(note, 0) > 0, 'the note')
  assert.equal(Atomics.load(note, 0), 1)
})

test('given a task that is the last of a group which the program waits for, its thread should know', async () => {
  const note = newGate()
  await group('last', () => void noteIfAwaited(isAwaitedNow(0), note))
  assert.equal(Atomics.load(note, 0), 2)
})

test('given a task that runs, we should tell its thread when an I/O task is called that reads its result', async () => {
  const result = isAwaited(0)
  await new Promise(go => setTimeout(go, 50))
  assert.equal(await waitOn(handOn(result)), true)
})

test('given a task that is sent when an I/O task waits for it, behind another, its thread should know from the beginning', async () => {
  const result = isAwaitedNow(0)
  read(result)
  assert.equal(await waitOn(handOn(result)), true)
})
