import assert from 'node:assert/strict'
import test from 'node:test'
import {
  CancelledError,
  Future,
  INOUT,
  barrier,
  cancel,
  group,
  implement,
  remove,
  task,
  waitOn,
} from 'millrace'
import type { Stream } from 'millrace'
import * as eager from '../fixtures/eager-tasks.ts'
import { rejection, thrown, until } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

async function collect<T>(stream: Stream<T>): Promise<T[]> {
  const values: T[] = []
  for await (const future of stream) values.push((await waitOn(future)) as T)
  return values
}

test('a loop receives futures of all values, in order', async () => {
  assert.deepEqual(await collect(eager.count(100)), upTo(100))
  assert.deepEqual(await collect(eager.countSlowly(10)), upTo(10))
  assert.deepEqual(await collect(eager.count(0)), [])
})

test('waiting on a whole stream is refused, and it can still be taken', async () => {
  const stream = eager.count(3)
  const error = await rejection(waitOn(stream))
  assert.deepEqual([error.code, /for await/.test(error.message)], ['MR_NOT_AWAITED', true])
  assert.deepEqual(await collect(stream), upTo(3))
})

test('the values of a stream are spread over tasks', async () => {
  const doubled: Future<number>[] = []
  for await (const value of eager.count(50)) doubled.push(eager.double(value))
  assert.deepEqual(
    await waitOn(doubled),
    upTo(50).map(n => n * 2),
  )
})

test('futures of a stream can be kept, and used when it is over', async () => {
  const values: number[] = []
  for await (const value of eager.count(40)) values.push(value)
  assert(values.every(value => (value as unknown) instanceof Future))
  assert.equal(thrown(() => (values[0] as number) + 1).code, 'MR_NOT_AWAITED')
  assert.equal(await eager.sum(values), 780)
})

test('a stream goes from task to task, through more stages than there are threads', async () => {
  assert.equal(await eager.total(eager.count(1000)), 499_500)
  const stages = eager.squares(eager.squares(eager.squares(eager.count(6))))
  assert.equal(await eager.total(stages), 1 + 2 ** 8 + 3 ** 8 + 4 ** 8 + 5 ** 8)
})

test('a stream may be inside an object, and two streams may meet in a task', async () => {
  assert.equal(await eager.inObject({ factor: 3, values: eager.count(10) }), 135)
  assert.equal(await eager.pairs(eager.zip(eager.count(3), eager.countSlowly(5))), '0:0 1:1 2:2')
})

test('a generator may use its array again after yielding it', async () => {
  const sums: Future<number>[] = []
  for await (const array of eager.arrays(30, 10_000)) sums.push(eager.sumArray(array))
  assert.deepEqual(
    await waitOn(sums),
    upTo(30).map(n => n * 10_000),
  )
})

test('small and large values keep their order', async () => {
  assert.deepEqual(await eager.order(eager.mixed(200)), upTo(200))
})

test('a slow loop holds a fast generator', async () => {
  const gate = newGate()
  let taken = 0
  for await (const value of eager.watched(gate, 1000)) {
    taken = (await waitOn(value)) + 1
    // Its buffer has four places, and it makes the next value only when there is room.
    assert(Atomics.load(gate, 0) <= taken + 5, `${Atomics.load(gate, 0)} made and ${taken} taken`)
    if (taken % 20 === 0) await new Promise(resolve => setTimeout(resolve, 2))
  }
  assert.equal(taken, 1000)
})

test('tasks that still read values hold the generator too', async () => {
  const gate = newGate()
  const held = newGate()
  const results: Future<number>[] = []
  const stream = eager.watched(gate, 100)
  const loop = (async () => {
    for await (const value of stream) results.push(eager.slowDouble(held, value))
  })()
  await reached(held)
  await new Promise(resolve => setTimeout(resolve, 50))
  assert(Atomics.load(gate, 0) <= 5, `${Atomics.load(gate, 0)} made while none was consumed`)
  open(held)
  await loop
  assert.equal((await waitOn(results)).length, 100)
})

test('the time for which a generator is held does not count for its timeout', async () => {
  let taken = 0
  for await (const _ of eager.timed(4)) {
    await new Promise(resolve => setTimeout(resolve, 400))
    taken++
  }
  assert.equal(taken, 4)
})

test('leaving the loop ends the generator, with its finally', async () => {
  const gate = newGate()
  for await (const value of eager.watched(gate, 1_000_000)) if ((await waitOn(value)) === 10) break
  await until(() => Atomics.load(gate, 2) === 1, 'the end of the generator')
  assert(Atomics.load(gate, 0) < 30)
  await barrier()
})

test('a task that leaves its loop, or takes nothing, ends the generator', async () => {
  const gate = newGate()
  assert.deepEqual(await eager.firstOf(eager.watched(gate, 1_000_000), 3), [0, 1, 2])
  await until(() => Atomics.load(gate, 2) === 1, 'the end of the generator')
  await eager.never(eager.watched(gate, 1_000_000))
  await barrier()
  assert(Atomics.load(gate, 0) < 40)
})

test('a cancelled consumer stops a generator that is not needed', async () => {
  const gate = newGate()
  const values = eager.watched(gate, 1_000_000)
  let result: PromiseLike<unknown> = Promise.resolve()
  await group('consumers', async () => {
    result = eager.keepsFirst(values, newGate())
    await rejection(result)
  }).catch(() => undefined)
  await barrier()
  assert(Atomics.load(gate, 0) < 40)
})

test('a generator whose consumer never starts does not start either', async () => {
  const gate = newGate()
  const bad = eager.fails('no input')
  const values = eager.watched(gate, 1_000_000)
  const result = eager.firstOf(values, bad)
  assert((await rejection(result)) instanceof CancelledError)
  await rejection(bad)
  await barrier()
  assert(Atomics.load(gate, 0) < 20)
})

test('cancelling the group of a generator ends the loop over it', async () => {
  const gate = newGate()
  await group('all', async () => {
    const stream = eager.hangs(gate)
    const seen: number[] = []
    const loop = (async () => {
      for await (const value of stream) seen.push(await waitOn(value))
    })()
    const ended = rejection(loop)
    await reached(gate)
    await until(() => seen.length === 1, 'the first value')
    await cancel('all')
    assert((await ended) instanceof CancelledError)
    assert.deepEqual(seen, [1])
  })
})

test('waiting for a generator to end before taking its values does not hang', async () => {
  const stream = eager.count(100)
  await barrier()
  assert.deepEqual(await collect(stream), upTo(100))
})

test('streams work inside tasks', async () => {
  assert.equal(await eager.nestedStream(40), 1560)
  assert.equal(await eager.nestedBetween(10), 285)
  const gate = newGate()
  await eager.nestedBreaks(gate)
  await until(() => Atomics.load(gate, 2) === 1, 'the end of the generator')
  assert.equal(await eager.nestedForgets(gate), 'forgot')
})

test('a stream is taken once', async () => {
  const stream = eager.count(3)
  assert.deepEqual(await collect(stream), [0, 1, 2])
  assert.equal(thrown(() => stream[Symbol.asyncIterator]()).code, 'MR_STREAM_TAKEN')
  assert.equal(thrown(() => eager.total(stream)).code, 'MR_STREAM_TAKEN')
})

test('wrong options and uses are refused', () => {
  const body = function* () {
    yield 1
  }
  assert.match(thrown(() => task({ buffer: 0 }, body)).message, /buffer is 0/)
  assert.match(thrown(() => task({ bufferBytes: 'much' }, body)).message, /not a size/)
  assert.match(thrown(() => task({ buffer: 3 } as object, () => 1)).message, /only a generator/)
  assert.match(thrown(() => task({ returns: 2 } as never, body)).message, /as many values as it yields/)
  assert.match(thrown(() => implement(eager.double, {}, body as never)).message, /must not be a generator/)
  const writes = task({ params: [INOUT] }, (_list: number[]) => undefined)
  assert.match(thrown(() => writes(eager.count(1) as never)).message, /got a stream/)
})

test('removing a stream that is not taken ends its generator', async () => {
  const gate = newGate()
  remove(eager.watched(gate, 1_000_000))
  await barrier()
  assert(Atomics.load(gate, 0) < 20)
})
