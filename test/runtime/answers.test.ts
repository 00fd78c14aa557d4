import assert from 'node:assert/strict'
import { join } from 'node:path'
import test from 'node:test'
import { waitOnFile } from 'millrace'
import { asksAgain, writesAfter } from '../fixtures/answers.ts'
import { temporaryFolder } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'

test('an attempt does not get the answer to a question of the attempt before', async () => {
  const path = join(temporaryFolder(), 'file')
  const writes = newGate()
  const gives = newGate()
  writesAfter(path, writes)
  await reached(writes)
  const result = asksAgain(path, newGate(), gives)
  await reached(gives)
  // What the first attempt asked for is there now, and what the second one asks for is not.
  open(writes)
  await waitOnFile(path)
  open(gives)
  assert.equal(await result, 5)
})
