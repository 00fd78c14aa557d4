import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { CancelledError, cancel, group, waitOn } from 'millrace'
import * as tasks from '../fixtures/tasks.ts'
import type { Box } from '../fixtures/tasks.ts'
import { rejection, temporaryFolder } from './embedded.ts'
import { newGate, reached } from './gates.ts'

const folder = temporaryFolder()

test('tasks call tasks, deeper than there are threads', async () => {
  assert.equal(await tasks.fibonacci(9), 34)
})

test('a task writes its parameter through tasks that it calls', async () => {
  const box: Box = { n: 1 }
  assert.equal(await tasks.nestedBox(box), 3)
  await waitOn(box)
  assert.equal(box.n, 3)
})

test('a task may wait in its first synchronous part', async () => {
  assert.equal(await tasks.nestedOwnBox(4), 8)
})

test('a task ends after the tasks that it forgot to wait for', async () => {
  const gate = newGate()
  await tasks.nestedForgets(gate, 20)
  assert.equal(gate[tasks.COUNT], 20)
})

test('a failure of a called task that is not handled fails the caller', async () => {
  const waited = await rejection(tasks.nestedFails('deep down'))
  assert.match(waited.task, /^nestedFails#/)
  assert.match(waited.message, /deep down/)
  const forgotten = await rejection(tasks.nestedForgetsFailure('nobody looked'))
  assert.match(forgotten.message, /nobody looked/)
})

test('a failure of a called task that is handled is no failure', async () => {
  assert.equal(await tasks.nestedCatches('caught'), 'TaskError')
})

test('groups work inside tasks', async () => {
  const gate = newGate()
  assert.match(String(await tasks.nestedGroup(gate)), /^fails#/)
})

test('waiting for what the caller itself makes is a cycle, and is refused', async () => {
  const path = join(mkdtempSync(join(folder, 'd')), 'file.txt')
  const error = await rejection(tasks.nestedCycle(path))
  assert.match(error.message, /MR_NESTED_CYCLE|would wait for nestedCycle#/)
})

test('cancel reaches tasks that running tasks called', async () => {
  const gate = newGate()
  let running: PromiseLike<unknown> = Promise.resolve()
  await group('outer', async () => {
    running = tasks.nestedHang(gate)
    await reached(gate)
    await cancel('outer')
  })
  assert((await rejection(running)) instanceof CancelledError)
  assert.equal(await tasks.fibonacci(5), 5)
})

test('a task whose thread ends under it takes with it what it called, and the rest goes on', async () => {
  const error = await rejection(tasks.nestedExits(newGate()))
  assert.equal(error.code, 'MR_THREAD_DIED')
  assert.equal(await tasks.fibonacci(6), 8)
})

for (const [what, code] of [
  ['slow', 'MR_TIMEOUT'],
  ['waits', 'MR_TIMEOUT'],
  ['exits', 'MR_THREAD_DIED'],
] as const) {
  test(`a task that handles the end of one that it called is not begun again for ever: ${what}`, async () => {
    const calls = [1, 2, 3].map(() => tasks.nestedHandles(what, newGate()))
    for (const call of calls) assert.deepEqual(await call, [code, 3])
  })
}

test('errors that a task catches are what they are in the program', async () => {
  assert.deepEqual(await tasks.nestedClasses(), [true, false, true, false, false, true, false, true])
})

test('a name can be used for one open group of a task at a time', async () => {
  assert.deepEqual(await tasks.nestedSameName(), [2, 'refused', 6])
})

test('what is left of a group in a task is cancelled when its body fails', async () => {
  // The gate is never opened.
  assert.equal(await tasks.nestedBodyFails(newGate()), 'the body')
})
