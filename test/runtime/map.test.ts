import assert from 'node:assert/strict'
import test from 'node:test'
import { TaskError, cancel, group, remove, shared, waitOn } from 'millrace'
import * as tasks from '../fixtures/map-tasks.ts'
import { rejection, until } from './embedded.ts'

await tasks.sum([])

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

test('map gives the results of all calls, in order', async () => {
  for (const n of [0, 1, 2, 255, 256, 257, 1000, 30_000]) {
    assert.deepEqual(
      await tasks.triple.map(upTo(n)),
      upTo(n).map(i => 3 * i),
    )
  }
  assert.deepEqual(await tasks.scaled.map([1.5, -0, Infinity], 2), [3, -0, Infinity])
  assert.deepEqual(await tasks.triple.map(Float64Array.of(1, 2)), [3, 6])
  assert.deepEqual(await tasks.triple.map([NaN]), [NaN])
})

test('map of values that are no numbers, and of functions that go on later', async () => {
  const described = await tasks.describe.map([{ n: 1 }, null, { n: 3 }])
  assert.deepEqual(described, [{ text: 'n=1' }, { text: 'n=none' }, { text: 'n=3' }])
  assert.deepEqual(
    await tasks.later.map(upTo(600)),
    upTo(600).map(i => i + 1),
  )
  assert.deepEqual(await tasks.sometimesLater.map(upTo(600)), upTo(600))
})

test('what map gives can be passed on, and lists and elements can be futures', async () => {
  assert.equal(await tasks.sum(tasks.triple.map(upTo(500))), (3 * 499 * 500) / 2)
  assert.deepEqual(await tasks.triple.map(tasks.range(5)), [0, 3, 6, 9, 12])
  assert.deepEqual(await tasks.triple.map(tasks.triple.map([1, 2])), [9, 18])
  assert.deepEqual(await tasks.triple.map([1, tasks.triple(1), tasks.triple(2)]), [3, 9, 18])
  assert.deepEqual(await waitOn({ list: tasks.triple.map([1]) }), { list: [3] })
  assert.deepEqual(await waitOn(tasks.triple.map([2])), [6])
  assert.equal(await tasks.inner(300), (6 * 299 * 300) / 2)
})

test('map captures its list at the call', async () => {
  const list = upTo(1000)
  const results = tasks.triple.map(list)
  list.fill(0)
  assert.deepEqual(
    await results,
    upTo(1000).map(i => 3 * i),
  )
  const points = [{ n: 1 }, { n: 2 }]
  const described = tasks.describe.map(points)
  for (const point of points) point.n = 9
  assert.deepEqual(await described, [{ text: 'n=1' }, { text: 'n=2' }])
})

test('a value that fails fails the map, and says which part it was in', async () => {
  const error = await rejection(tasks.failsAt.map(upTo(1000), 777))
  assert.ok(error instanceof TaskError)
  assert.match(error.message, /^failsAt\.map#\d+ \[776\.\.779\] failed: no 777/)
  assert.ok(error.cause instanceof RangeError)
  assert.deepEqual(await tasks.failsAt.map([1, 2], 777), [1, 2])
})

test('failures that are ignored or tried again are those of single values', async () => {
  assert.deepEqual(
    await tasks.ignoring.map(upTo(600)),
    upTo(600).map(i => (i % 10 === 3 ? -1 : i)),
  )
  const tries = shared(Int32Array, 600)
  assert.deepEqual(await tasks.flaky.map(upTo(600), tries), upTo(600))
  assert.equal(tries[0], 3)
  assert.equal(tries[1], 0)
})

test('tasks that cannot be taken together are called one by one', async () => {
  assert.deepEqual(await tasks.pair.map([1, 2]), [
    [1, '1'],
    [2, '2'],
  ])
  assert.deepEqual(await tasks.exit.map([0, 3]), [0, 3])
  assert.deepEqual(await tasks.twice.map(upTo(10)), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18])
  const point = new tasks.Point()
  assert.deepEqual(await tasks.move.map([point, point], 2), [2, 4])
  await waitOn(point)
  assert.equal(point.x, 4)
})

test('a map in a group is cancelled with it', async () => {
  const gate = shared(Int32Array, 2)
  const done = group('maps', () => {
    void tasks.waiting.map(upTo(1000), gate).catch(() => undefined)
  })
  await until(() => Atomics.load(gate, 1) > 0, 'a call has begun')
  await cancel('maps')
  await done.catch(() => undefined)
  assert.ok((gate[1] as number) < 1000)
})

test('what is no list is refused, and what was removed is gone', async () => {
  assert.throws(() => tasks.triple.map(5 as never), { code: 'MR_OPTION' })
  const results = tasks.triple.map(upTo(10))
  remove(results)
  assert.equal((await rejection(Promise.resolve(results))).code, 'MR_REMOVED')
})
