import assert from 'node:assert/strict'
import test from 'node:test'
import { barrier, waitOn } from 'millrace'
import type { Stream } from 'millrace'
import * as eager from '../fixtures/eager-tasks.ts'
import { rejection } from './embedded.ts'
import type { MillraceFields } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

/** The values as far as they come, and the error after them. */
async function collect(stream: Stream<number>): Promise<[number[], MillraceFields | null]> {
  const values: number[] = []
  try {
    for await (const future of stream) values.push(await waitOn(future))
  } catch (error) {
    return [values, error as MillraceFields]
  }
  return [values, null]
}

for (const at of [0, 1, 3, 9]) {
  test(`another attempt of a generator that failed at ${at} goes on where it was`, async () => {
    assert.deepEqual(await collect(eager.flaky(newGate(), 10, at, 0)), [upTo(10), null])
    assert.equal(await eager.total(eager.flaky(newGate(), 10, at, 0)), 45)
  })
}

test('another attempt that comes to other values than those released fails', async () => {
  const [values, error] = await collect(eager.flaky(newGate(), 10, 4, 1))
  assert.deepEqual(values, upTo(4))
  assert.equal(error?.code, 'MR_RELEASE_CHANGED')
  assert.match(error.message, /first 4 values are different now/)
})

test('another attempt that ends before it has come to what was released fails', async () => {
  const [values, error] = await collect(eager.shrinks(newGate()))
  assert.deepEqual(values, [1, 2])
  assert.match(error?.message ?? '', /ended after 1 values, of which 2 were released/)
})

test('released values stay when another attempt comes to the same, and their readers run once', async () => {
  const gate = newGate()
  const counted = newGate()
  const [first, second] = eager.flakyReady(gate, 0)
  const doubled = eager.countedDouble(counted, first)
  await reached(gate)
  assert.equal(await doubled, 20)
  open(gate)
  assert.equal(await second, 20)
  assert.equal(Atomics.load(counted, 2), 1)
})

test('a value that was released cannot be another one in a later attempt', async () => {
  const gate = newGate()
  open(gate)
  const [first, second] = eager.flakyReady(gate, 1)
  assert.equal((await rejection(second)).code, 'MR_RELEASE_CHANGED')
  assert.equal(await first, 10)
  const [same] = eager.flakyReturn(newGate(), 0)
  assert.equal(await same, 10)
  await barrier()
  eager.flakyReturn(newGate(), 1)
  assert.equal((await rejection(barrier())).code, 'MR_RELEASE_CHANGED')
})

test('a loop gets the values that were released, then the failure', async () => {
  const [values, error] = await collect(eager.breaks(6))
  assert.deepEqual(values, upTo(6))
  assert.match(error?.message ?? '', /broke after 6/)
  assert.match((await collect(eager.breaks(0)))[1]?.message ?? '', /broke after 0/)
})

test('a task that takes a stream is told of its failure where it takes', async () => {
  const result = eager.total(eager.breaks(6))
  assert.match((await rejection(result)).message, /broke after 6/)
  await rejection(barrier())
})

test('an ignored failure keeps what was released, and defaults stand for the rest, by position', async () => {
  assert.deepEqual(await collect(eager.breaksQuietly(2)), [[0, 1, 102, 103], null])
  assert.deepEqual(await collect(eager.breaksQuietly(6)), [upTo(6), null])
  assert.deepEqual(await waitOn(eager.partly()), [-1, 5, -3])
})

test('a task that failed after it took values is not tried again', async () => {
  const gate = newGate()
  const error = await rejection(eager.keepsFirst(eager.count(100), gate))
  assert.match(error.message, /gave up at 3/)
  assert.equal(Atomics.load(gate, 2), 1)
})

test('a generator whose thread ends under it goes on in another attempt', async () => {
  assert.deepEqual(await collect(eager.exits(newGate(), 12, 5)), [upTo(12), null])
})

test('a value that cannot be sent fails the generator, and names it', async () => {
  const [values, error] = await collect(eager.notCloneable() as Stream<number>)
  assert.deepEqual(values, [1])
  assert.match(error?.message ?? '', /value 1 that notCloneable released/)
})
