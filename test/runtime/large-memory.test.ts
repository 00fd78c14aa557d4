import assert from 'node:assert/strict'
import test from 'node:test'
import { waitOn } from 'millrace'
import * as tasks from '../fixtures/large-tasks.ts'
import type { Held } from '../fixtures/large-tasks.ts'

// Small arrays are copied with the value; large ones travel in shared memory, and must behave in the same way.
for (const length of [8, 5000]) {
  const make = (): Float64Array => new Float64Array(length)
  const held = (): Held => ({ rows: make(), n: 0 })

  test(`arrays of ${length}: what a task returns is not the memory of what it writes`, async () => {
    const rows = make()
    const result = tasks.bump(rows)
    tasks.bump(rows)
    tasks.bump(rows)
    await waitOn(rows)
    assert.deepEqual([rows[0], (await result)[0]], [3, 1])
    const [one, other] = tasks.twice(rows)
    tasks.bump(one)
    tasks.bump(one)
    assert.deepEqual([(await one)[0], (await other)[0]], [5, 3])
  })

  test(`arrays of ${length}: what a task puts into two arguments is two arrays`, async () => {
    const [one, other] = [held(), held()]
    tasks.putInto(one, other)
    tasks.bumpHeld(one)
    tasks.bumpHeld(one)
    tasks.bumpHeld(other)
    await waitOn([one, other])
    assert.deepEqual([one.rows[0], other.rows[0]], [2, 1])
  })

  test(`arrays of ${length}: called tasks have what was there when they were called`, async () => {
    const rows = make()
    assert.deepEqual(await tasks.callsBetween(rows), [0, 10])
    assert.equal((await waitOn(rows))[0], 20)
  })

  test(`arrays of ${length}: an object of a task may hold what the task reads`, async () => {
    const rows = make()
    const { n } = await tasks.holdsArgument(rows)
    assert.deepEqual([n, rows[0]], [2, 0])
  })

  test(`arrays of ${length}: each value that a generator yields is what it was then`, async () => {
    const firsts: unknown[] = []
    for await (const rows of tasks.yieldsArgument(make())) firsts.push((await waitOn(rows))[0])
    assert.deepEqual(firsts, [1, 2, 3])
  })

  test(`arrays of ${length}: an object that holds an array which a task has read can be written`, async () => {
    const rows = make()
    await tasks.firstOf(rows, 0)
    const object: Record<string, unknown> = { rows }
    tasks.addName(object)
    await waitOn(object)
    assert.deepEqual([object['name'], object['rows']], ['new', rows])
  })
}

test('an object that holds nothing but objects is written as a whole, time and again', async () => {
  const root: { kids: { parent?: object }[] } = { kids: [] }
  for (let i = 1; i <= 3; i++) {
    tasks.addKid(root)
    await waitOn(root)
    assert.equal(root.kids.length, i)
    assert(root.kids.every(kid => kid.parent === root))
  }
})
