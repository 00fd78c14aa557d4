import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Task } from '../../src/core/tasks/task.ts'
import { ATTEMPT_STATES, Attempt } from '../../src/node/attempt.ts'
import type { AttemptState } from '../../src/node/attempt.ts'
import { Job, attemptOf, beginAttempt, endAttempt } from '../../src/node/job.ts'
import type { Definition } from '../../src/model/definition.ts'

const makeTask = (): Task => {
  const job = new Job({} as Definition, [], [], { unhandled: new Set() })
  return { name: 'square#1', attempt: 2, payload: job } as unknown as Task
}

test('an attempt goes its way and is used again', () => {
  const task = makeTask()
  const attempt = beginAttempt(task)
  assert.equal(attempt.isBusy, true)
  attempt.move('sent', task)
  assert.equal(attempt.isSent, true)
  assert.equal(attempt.isBusy, false)
  attempt.position = 7
  endAttempt(task)
  const next = makeTask()
  assert.equal(beginAttempt(next), attempt)
  assert.equal(attempt.state, 'preparing')
  assert.equal(attempt.position, null)
  assert.equal(attempt.story(), 'preparing')
})

test('an attempt that has files, memory or a program is not used again', () => {
  for (const mark of [
    (attempt: Attempt) => (attempt.paths = []),
    (attempt: Attempt) => attempt.withMemory(),
    (attempt: Attempt) => attempt.withProgram(),
  ]) {
    const task = makeTask()
    const attempt = beginAttempt(task)
    mark(attempt)
    attempt.move('sent', task)
    endAttempt(task)
    assert.notEqual(beginAttempt(makeTask()), attempt)
  }
})

test('a move that is not legal throws with the story', () => {
  const task = makeTask()
  const attempt = beginAttempt(task)
  attempt.move('held', task)
  attempt.move('sent', task)
  attempt.move('settling', task)
  assert.throws(() => attempt.move('held', task), {
    code: 'MR_INTERNAL',
    message:
      /attempt 2 of square#1 cannot go from settling to held\. Its story: preparing, held, sent, settling/,
  })
  assert.equal(attempt.state, 'settling')
})

test('a task that has not been started has no attempt', () => {
  assert.throws(() => attemptOf(makeTask()), { code: 'MR_INTERNAL' })
})

test('whatever is tried, an attempt that is over stays over, and the story ends with its state', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...ATTEMPT_STATES), { maxLength: 20 }), tries => {
      const task = makeTask()
      const attempt = new Attempt()
      const way: AttemptState[] = []
      for (const to of tries) {
        const before = attempt.state
        try {
          attempt.move(to, task)
          way.push(to)
        } catch {
          assert.equal(attempt.state, before)
        }
        if (before === 'over') assert.equal(attempt.state, 'over')
      }
      const last = way.slice(-7)
      assert.equal(attempt.story(), ['preparing', ...last].join(', '))
    }),
  )
})
