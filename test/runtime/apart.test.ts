import assert from 'node:assert/strict'
import test from 'node:test'
import { configure, waitOn } from 'millrace'
import {
  callsCallers,
  callsDeadly,
  callsTimed,
  visits,
  visitsInTime,
  visitsOrExits,
} from '../fixtures/apart.ts'
import { COUNT } from '../fixtures/tasks.ts'
import './embedded.ts'
import { newGate } from './gates.ts'

configure({ cpus: 1 })

const SOME = Array.from({ length: 20 }, () => null)

test('tasks of a kind that has ended a thread run one at a time where there is one CPU', async () => {
  // They are known to be short.
  await waitOn(SOME.map(() => visitsOrExits(null, 0)))
  const gate = newGate()
  assert.equal(await callsDeadly(gate), 'MR_THREAD_DIED')
  assert.equal(gate[COUNT], 0)
})

test('nothing runs beside a task that has a thread apart where there is one CPU', async () => {
  await waitOn(SOME.map(() => visits(null)))
  await waitOn(SOME.map(() => visitsInTime(null)))
  const gate = newGate()
  await callsTimed(gate)
  assert.equal(gate[COUNT], 0)
})

test('what waits behind a task that has a thread apart goes on when that waits itself', async () => {
  await waitOn(SOME.map(() => visits(null)))
  assert.deepEqual(
    await waitOn(SOME.map(() => callsCallers())),
    Array.from(SOME, () => 6),
  )
})
