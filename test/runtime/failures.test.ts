import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import {
  CancelledError,
  MillraceError,
  TaskError,
  barrier,
  cancel,
  group,
  shared,
  waitOn,
  waitOnFile,
} from 'millrace'
import * as tasks from '../fixtures/tasks.ts'
import type { Box } from '../fixtures/tasks.ts'
import { rejection, temporaryFolder } from './embedded.ts'
import type { MillraceFields } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'

const LARGE = 10_000
const folder = temporaryFolder()
const newFile = (text: string): string => {
  const path = join(mkdtempSync(join(folder, 'f')), 'file.txt')
  writeFileSync(path, text)
  return path
}

test('a failed result throws the error of its task, as often as it is waited for', async () => {
  const failed = tasks.fails('no luck')
  for (let i = 0; i < 3; i++) {
    const error = await rejection(failed)
    assert(error instanceof TaskError)
    assert(error instanceof MillraceError)
    assert.equal(error.code, 'MR_TASK_FAILED')
    assert.match(error.task, /^fails#\d+$/)
    assert.equal(error.attempt, 1)
    const cause = error.cause as Error
    assert(cause instanceof TypeError)
    assert.equal(cause.message, 'no luck')
    assert.match(cause.stack ?? '', /tasks\.ts/)
  }
})

test('a task that is given a failed result afterwards is cancelled', async () => {
  const failed = tasks.failsQuietly('no luck')
  await rejection(failed)
  const error = await rejection(tasks.identity(failed))
  assert(error instanceof CancelledError, String(error))
  assert.equal((error.cause as unknown as MillraceFields).cause.message, 'no luck')
})

test('own error classes and things that are no errors get through as well as they can', async () => {
  const own = (await rejection(tasks.failsOwn('mine'))).cause as unknown as {
    message: string
    detail: number
  }
  assert.deepEqual([own.message, own.detail], ['mine', 7])
  assert(own instanceof tasks.OwnError)
  for (const what of ['text', 5, null, undefined, { a: 1 }]) {
    const error = await rejection(tasks.failsOddly(what))
    assert(error instanceof TaskError)
    assert.deepEqual(error.cause, what)
  }
})

test('what depends on a failed result is cancelled, naming the failure behind it', async () => {
  const failed = tasks.failsQuietly('the root of it')
  const far = tasks.identity(tasks.identity(failed))
  const error = await rejection(far)
  assert(error instanceof CancelledError)
  assert.equal(error.code, 'MR_CANCELLED')
  assert.match(error.task, /^identity#/)
  assert.match(error.message, /failsQuietly#\d+/)
  assert((error as { cause?: unknown }).cause instanceof TaskError)
  assert.equal((error.cause as unknown as MillraceFields).cause.message, 'the root of it')
  assert.equal(await tasks.add(1, 2), 3)
})

test('fail stops what has not started, until the program has been told', async () => {
  const one = newGate()
  const failed = tasks.failsAfter(one)
  const later = tasks.add(tasks.wait(one, 1), 1)
  await reached(one, 2)
  open(one)
  const error = await rejection(failed)
  assert.equal(error.cause.message, 'failed behind the gate')
  await later.catch(() => undefined)
  assert.equal(await tasks.add(2, 2), 4)
})

test('of several values, what failed is thrown, and not that one before it was cancelled because of that', async () => {
  const [one, two] = [newGate(), newGate()]
  const held = tasks.wait(one, 1)
  const cancelled = tasks.add(held, 1)
  const failed = tasks.failsAfter(two)
  await reached(one)
  await reached(two)
  const error = rejection(waitOn([{ cancelled }, failed]))
  open(two)
  assert.equal((await rejection(failed)).cause.message, 'failed behind the gate')
  open(one)
  assert.ok((await rejection(cancelled)) instanceof CancelledError)
  const thrown = await error
  assert.ok(thrown instanceof TaskError, String(thrown))
  assert.match(thrown.task, /^failsAfter#/)
  const alone = await rejection(waitOn([cancelled, held]))
  assert.ok(alone instanceof CancelledError, 'what failed is not among these')
})

test('a barrier throws a failure that was not waited for, once', async () => {
  tasks.fails('unseen')
  const error = await rejection(barrier())
  assert.equal(error.cause.message, 'unseen')
  await barrier()
  assert.equal(await tasks.add(2, 3), 5)
})

test('an object is what it was before when the task that writes it fails', async () => {
  const box: Box = { n: 1 }
  tasks.bump(box)
  tasks.failsBox(box)
  const error = await rejection(waitOn(box))
  assert.match(error.task, /^failsBox#/)
  await waitOn(box)
  assert.equal(box.n, 2)
  tasks.bump(box)
  await waitOn(box)
  assert.equal(box.n, 3)
})

test('a large array that the program still has is what it was when the task that writes it fails', async () => {
  const array = new Float64Array(LARGE).fill(1)
  tasks.failsArray(array)
  await rejection(waitOn(array))
  await waitOn(array)
  assert.equal(await tasks.total(array), LARGE)
  const made = tasks.makeArray(LARGE, 2)
  const same = await made
  tasks.failsArray(made)
  await rejection(made)
  assert.equal(await made, same)
  assert.equal(await tasks.total(made), 2 * LARGE)
})

test('a large array whose memory went into a failed attempt keeps throwing until it is written anew', async () => {
  const array = new Float64Array(LARGE).fill(1)
  tasks.scale(array, 2)
  tasks.failsArray(array)
  for (let i = 0; i < 2; i++) assert.match((await rejection(waitOn(array))).task, /^failsArray#/)
  assert((await rejection(tasks.total(array))) instanceof CancelledError)
  tasks.fill(array, 3)
  await waitOn(array)
  assert.equal(array[5], 3)
})

for (const form of ['throw', 'exit', 'hang'] as const) {
  const ending = { throw: 'throws', exit: 'ends its thread', hang: 'is stopped by its timeout' }[form]

  test(`each attempt of a task that ${ending} sees the original object`, async () => {
    const box: Box = { n: 1, inner: { list: [0] } }
    const one = newGate()
    assert.equal(await tasks.retriedBox(box, one, 2, form), 2)
    await waitOn(box)
    assert.deepEqual(box, { n: 2, inner: { list: [0, 2] } })
    assert.equal(one[tasks.COUNT], 3)
  })

  test(`each attempt of a task that ${ending} sees the original arrays`, async () => {
    const small = new Float64Array(4).fill(1)
    const large = new Float64Array(LARGE).fill(1)
    const inPlace = shared(Float64Array, LARGE).fill(1)
    const made = tasks.makeArray(LARGE, 1)
    const arrays = [small, large, inPlace, made]
    for (const array of arrays) tasks.retriedArray(array, newGate(), 1, form)
    for (const array of arrays) assert.equal((await waitOn(array))[3], 2)
  })

  test(`each attempt of a task that ${ending} reads the same array`, async () => {
    const one = newGate()
    assert.equal(await tasks.retriedRead(tasks.makeArray(LARGE, 1), one, 1, form), LARGE)
  })

  test(`each attempt of a task that ${ending} sees the original file`, async () => {
    const path = newFile('a')
    tasks.retriedFile(path, newGate(), 1, form)
    assert.equal(readFileSync(await waitOnFile(path), 'utf8'), 'a+')
  })

  test(`an ignored failure that ${ending} leaves usable data`, async () => {
    const box: Box = { n: 1 }
    const large = new Float64Array(LARGE).fill(1)
    const inPlace = shared(Float64Array, 4).fill(1)
    const out: Box = { n: 3 }
    assert.equal(await tasks.ignoredBox(box, newGate(), form), undefined)
    tasks.ignoredArray(large, newGate(), form)
    tasks.ignoredArray(inPlace, newGate(), form)
    tasks.ignoredOut(out, newGate(), form)
    await waitOn([box, large, inPlace, out])
    // What was written is kept where it can be had: not from a thread that is gone.
    assert.equal(box.n, form === 'throw' ? -1 : 1)
    assert.deepEqual([large[0], large[1], large[2]], form === 'throw' ? [-1, 1, 1] : [1, 1, 1])
    assert.deepEqual([...inPlace], [-1, 1, 1, 1])
    assert.equal(out.n, form === 'throw' ? -1 : 3)
    assert.equal(await tasks.total(large), form === 'throw' ? LARGE - 2 : LARGE)
    assert.equal(await tasks.readBox(box), box.n)
  })
}

test('an ignored failure gives defaults', async () => {
  const box: Box = { n: 1 }
  assert.deepEqual(await tasks.ignoredWithDefaults(box), { fallback: true })
  await waitOn(box)
  assert.deepEqual(box, { n: 42 })
  const [a, b] = tasks.ignoredTwo()
  assert.deepEqual([await a, await b], [7, 8])
})

test('the last attempt is named in the error', async () => {
  const error = await rejection(tasks.retriedBox({ n: 1 }, newGate(), 99, 'throw'))
  assert.equal(error.attempt, 4)
  assert.match(error.message, /^retriedBox#\d+ failed \(attempt 4\): attempt 4 fails/)
})

test('a task that takes too long is stopped, also when it never lets go of its thread', async () => {
  for (const slow of [tasks.slow(newGate()), tasks.slowAsync()]) {
    const error = await rejection(slow)
    assert.equal(error.code, 'MR_TIMEOUT')
    assert.equal(error.timedOut, true)
  }
  assert.equal(await tasks.add(1, 1), 2)
})

test('a task that ends in time has its result, though the program was too busy to look', async () => {
  const gate = newGate()
  const result = tasks.timedWait(gate)
  await reached(gate)
  open(gate)
  Atomics.wait(newGate(), 0, 0, 2200)
  assert.equal(await result, 'in time')
})

test('a failure in a group cancels the rest of it and throws at its barrier; others go on', async () => {
  const one = newGate()
  const outside = tasks.wait(one, 5)
  const box: Box = { n: 1 }
  let inside: PromiseLike<unknown> = Promise.resolve()
  const error = await rejection(
    group('doomed', () => {
      const failed = tasks.failsAfter(one)
      inside = tasks.identity(failed)
      tasks.bumpTo(box, tasks.identity(failed) as never)
      setTimeout(() => open(one), 20)
    }),
  )
  assert.match(error.task, /^failsAfter#/)
  assert.equal(error.cause.message, 'failed behind the gate')
  assert.equal(await outside, 5)
  assert((await rejection(inside)) instanceof CancelledError)
  assert((await rejection(waitOn(box))) instanceof CancelledError)
  assert.equal(await tasks.add(1, 1), 2)
})

test('a group gives what its body returns, and an error that its body throws', async () => {
  assert.equal(await group('fine', async () => tasks.add(1, 2)), 3)
  const error = await rejection<Error>(
    group('thrown', () => {
      throw new RangeError('by the body')
    }),
  )
  assert(error instanceof RangeError)
})

test('a name can be used for one open group at a time', async () => {
  await group('same', async () => {
    assert.equal((await rejection(group('same', () => undefined))).code, 'MR_GROUP')
  })
  await group('same', () => undefined)
})

test('a failure in an inner group that the program handles does not reach the outer one', async () => {
  const result = await group('outer', async () => {
    await rejection(group('inner', () => void tasks.fails('inside')))
    return tasks.add(20, 22)
  })
  assert.equal(result, 42)
})

test('cancel stops what runs and what waits in the group', async () => {
  const one = newGate()
  const box: Box = { n: 1 }
  let running: PromiseLike<unknown> = Promise.resolve()
  let waiting: PromiseLike<unknown> = Promise.resolve()
  await group('stopped', async () => {
    running = tasks.wait(one, 1)
    waiting = tasks.add(running as never, 1)
    tasks.bumpAfter(box, one)
    await reached(one, 2)
    await cancel('stopped')
  })
  for (const future of [running, waiting]) {
    const error = await rejection(future)
    assert(error instanceof CancelledError, String(error))
    assert.match(error.message, /group stopped was cancelled|wait#\d+ was cancelled/)
    assert.equal(error.cause, undefined)
  }
  assert((await rejection(waitOn(box))) instanceof CancelledError)
  await waitOn(box)
  assert.equal(box.n, 1)
  assert.equal(await tasks.add(1, 1), 2)
})

test('cancel at any moment of a task with files leaves the original and no error behind', async () => {
  for (let round = 0; round < 30; round++) {
    const path = newFile('original')
    const one = newGate()
    open(one)
    let reading: PromiseLike<unknown> = Promise.resolve()
    await group('quick', async () => {
      tasks.appendTextAfter(path, 'x', one)
      reading = tasks.readText(path)
      for (let turn = 0; turn < round % 10; turn++) await new Promise(resolve => setImmediate(resolve))
      await cancel('quick')
    })
    const text = await Promise.resolve(reading).catch(() => 'cancelled')
    const path2 = await waitOnFile(path).catch(() => path)
    const content = readFileSync(path2, 'utf8')
    assert(['original', 'originalx'].includes(content), content)
    assert(['cancelled', 'originalx'].includes(text as string), String(text))
    assert.equal(await tasks.add(round, 1), round + 1)
  }
})

test('a thread that ends takes only its task with it', async () => {
  const one = newGate()
  const other = tasks.wait(one, 9)
  await reached(one)
  const error = await rejection(tasks.exits(3))
  assert.equal(error.code, 'MR_THREAD_DIED')
  assert.match(error.message, /process\.exit\(3\)/)
  open(one)
  assert.equal(await other, 9)
  assert.equal(await tasks.add(1, 1), 2)
})

test('an exception outside of a task fails the task that runs there', async () => {
  for (const failed of [tasks.crashesLater(), tasks.rejectsLater()]) {
    const error = await rejection(failed)
    assert.equal(error.code, 'MR_THREAD_DIED')
    assert.match(error.message, /thrown outside of the task|a rejection that nobody handles/)
    assert.match(error.message, /, at .*fixtures\/tasks\.ts:\d+:\d+/)
    assert.match((error.cause as Error).message, /a timer, an event, or a promise/)
  }
  assert.equal(await tasks.add(1, 1), 2)
})

test('short tasks that wait behind one that ends its thread are run elsewhere', async () => {
  // Teaches the runtime that these are short, so that they queue on a lane.
  await waitOn(Array.from({ length: 300 }, () => tasks.add(1, 1)))
  const futures: PromiseLike<number>[] = []
  let exits: PromiseLike<unknown> = Promise.resolve()
  await group('mixed', () => {
    for (let i = 0; i < 300; i++) futures.push(tasks.add(i, 1))
  }).catch(() => undefined)
  exits = tasks.exits(0)
  const more = Array.from({ length: 300 }, (_, i) => tasks.asyncAdd(i, 1))
  await rejection(exits)
  const outcomes = await Promise.allSettled([...futures, ...more])
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected')
      assert(outcome.reason instanceof CancelledError, String(outcome.reason))
  }
})
