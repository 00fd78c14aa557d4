import assert from 'node:assert/strict'
import test from 'node:test'
import { TaskError } from 'millrace'
import {
  THROWN,
  answers,
  throws,
  throwsInside,
  throwsIo,
  throwsLater,
  throwsTwice,
} from '../fixtures/throws.ts'
import { rejection } from './embedded.ts'

for (const name of Object.keys(THROWN)) {
  test(`whatever a task throws is reported and can be caught: ${name}`, { timeout: 60_000 }, async () => {
    for (const call of [throws, throwsLater, throwsTwice, throwsIo, throwsInside]) {
      const error = await rejection(call(name) as never)
      assert(error instanceof TaskError, String(error))
      // The thread lives: it is the throw that is reported, not an end of the thread.
      assert.equal(error.code, 'MR_TASK_FAILED', error.message)
      assert.match(error.message, /^throws\w*#\d+ failed(?: \(attempt 2\))?: \S/)
      assert.ok(error.message.length < 200_000, `${error.message.length} characters`)
    }
    assert.equal(await answers(), process.pid)
  })
}
