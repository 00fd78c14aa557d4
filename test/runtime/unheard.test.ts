import assert from 'node:assert/strict'
import test from 'node:test'
import { cancel, configure, group, waitOn } from 'millrace'
import { visit } from '../fixtures/gated.ts'
import { REACHED } from '../fixtures/tasks.ts'
import type { Gate } from '../fixtures/tasks.ts'
import './embedded.ts'
import { newGate } from './gates.ts'

configure({ cpus: 1 })

/** Stops the program, so that it hears of nothing, until a task is at the gate. */
function standStillUntilReached(gate: Gate): void {
  const end = Date.now() + 60_000
  while (Atomics.load(gate, REACHED) === 0 && Date.now() < end) Atomics.wait(gate, REACHED, 0, 5)
  assert.equal(Atomics.load(gate, REACHED), 1)
}

test('a task that is cancelled when it has begun, but the end of the one before it was not heard of, leaves its thread', async () => {
  await waitOn(Array.from({ length: 20 }, () => visit(null)))
  const gate = newGate()
  await group('held', async () => {
    visit(null)
    visit(gate)
    // They are sent, and nothing more can be heard.
    await Promise.resolve()
    await Promise.resolve()
    standStillUntilReached(gate)
    await cancel('held')
  })
  await visit(null)
})
