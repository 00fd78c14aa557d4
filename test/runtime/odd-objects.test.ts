import assert from 'node:assert/strict'
import test from 'node:test'
import { cancel, group, shared, waitOn } from 'millrace'
import * as tasks from '../fixtures/odd-object-tasks.ts'
import type { Item } from '../fixtures/odd-object-tasks.ts'
import { holds } from '../fixtures/random-tasks.ts'
import { rejection, thrown, until } from './embedded.ts'

test('what a task writes is the same object inside an argument before it', async () => {
  const item = { n: 1 }
  assert.deepEqual(await tasks.readBeside([item], item), [2, true])
  await waitOn(item)
  assert.deepEqual(await tasks.readBeside([item], item), [3, true])
  await waitOn(item)
  assert.equal(item.n, 3)
})

test('a part that is common to a read and a written argument is refused', () => {
  const part = { n: 1 }
  const error = thrown(() => tasks.readCommonPart({ part }, { part }))
  assert.equal(error.code, 'MR_ALIAS')
  assert.match(error.message, /argument 1 of readCommonPart/)
})

test('objects that are keys of a map keep their identity', async () => {
  const [key, item] = [{ n: 1 }, { n: 5 }]
  const map = new Map<Item, Item>([[key, item]])
  tasks.turnKeys(map)
  await waitOn(map)
  assert(map.size === 1 && map.get(item) === key)
  assert.equal(key.n, 2)
})

test('a view that a task makes need not fit the memory of the program', async () => {
  const holder: { bytes: Uint8Array; doubles?: Float64Array } = {
    bytes: new Uint8Array(new ArrayBuffer(32), 3, 16),
  }
  tasks.viewAsDoubles(holder)
  await waitOn(holder)
  assert.deepEqual([...(holder.doubles ?? [])], [0])
})

test('a sealed part that a task extended is replaced; a sealed object is refused', async () => {
  const part = Object.seal({ kept: 1 })
  const list = Object.seal([1, 2])
  const holder = { part: part as Record<string, unknown>, list }
  tasks.extendPart(holder)
  await waitOn(holder)
  assert.deepEqual(holder, { part: { kept: 1, added: 1 }, list: [1] })
  assert.deepEqual([part, list], [{ kept: 1 }, [1, 2]])
  const sealed: Record<string, unknown> = Object.seal({ kept: 1 })
  tasks.extend(sealed)
  const error = await rejection(waitOn(sealed))
  assert.equal(error.code, 'MR_DIRECTION')
})

test('an array that is very long and almost empty takes no time', { timeout: 60_000 }, async () => {
  const length = 2 ** 32 - 1
  const place = 2 ** 31
  const make = (): unknown[] => {
    const list: unknown[] = [1]
    list.length = length
    list[place] = { n: 1 }
    return list
  }
  assert.equal(await tasks.lengthOf(make()), length)
  assert.equal(await tasks.lengthOf([make()]), 1)
  const list = make()
  const item = list[place]
  tasks.setSecond(list)
  await waitOn(list)
  assert.deepEqual(Object.keys(list), ['0', '1', String(place)])
  assert(list.length === length && list[1] === 'set' && list[place] === item)
  const made = await tasks.makeSparse()
  assert(made.length === length && made[7] === 'there')
  const holder = make()
  holder[5] = tasks.lengthOf([1])
  await waitOn(holder)
  assert.equal(holder[5], 1)
  const frozen = await waitOn(Object.freeze(make()))
  assert.equal(frozen.length, length)
})

test("after a cancelled OUT, the program's own array is the value again", async () => {
  for (const length of [4, 5000]) {
    const [read, written] = [1, 2].map(n => new Float64Array(length).fill(n)) as [Float64Array, Float64Array]
    const gate = shared(Int32Array, 1)
    const name = `cancelled ${length}`
    await group(name, async () => {
      const held = holds(gate)
      tasks.fill(read, held)
      tasks.fill(written, held)
      await until(() => Atomics.load(gate, 0) === 1, 'the task that holds')
      await cancel(name)
    })
    assert.equal(await tasks.firstOf(read), 1)
    tasks.double(written)
    await waitOn(written)
    assert.deepEqual([read[0], written[0]], [1, 4])
    assert.equal(await waitOn(read), read)
  }
})
