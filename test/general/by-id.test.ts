import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ById } from '../../src/general/by-id.ts'

test('a table by numbers should hold what a map holds, whatever comes and goes', () => {
  const id = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 2 ** 40 }))
  const step = fc.record({ id, isAdded: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), steps => {
      const table = new ById<{ id: number; mark: number }>()
      const map = new Map<number, { id: number; mark: number }>()
      for (const [mark, { id: number, isAdded }] of steps.entries()) {
        if (isAdded) {
          const item = { id: number, mark }
          table.add(item)
          map.set(number, item)
        } else assert.equal(table.delete(number), map.delete(number))
        assert.equal(table.size, map.size)
        assert.equal(table.get(number), map.get(number))
      }
      for (const [number, item] of map) assert.equal(table.get(number), item)
      assert.deepEqual(new Set(table), new Set(map.values()))
    }),
  )
})

test('a table by numbers should find each of many that follow one another, as the first of them go', () => {
  const table = new ById<{ id: number }>()
  for (let i = 1; i <= 5000; i++) {
    table.add({ id: i })
    if (i > 1000) assert(table.delete(i - 1000))
  }
  assert.equal(table.size, 1000)
  for (let i = 1; i <= 5000; i++) assert.equal(table.get(i)?.id, i > 4000 ? i : undefined)
})

test('a table by numbers should hold the rest of a crowd that has gone', () => {
  const table = new ById<{ id: number }>()
  for (let i = 1; i <= 20_000; i++) table.add({ id: i })
  for (let i = 1; i <= 20_000; i++) {
    if (i % 1000 !== 0) assert(table.delete(i))
    if (i % 997 === 0) assert.equal(table.get(20_000)?.id, 20_000)
  }
  assert.deepEqual(
    [...table].map(({ id }) => id).sort((a, b) => a - b),
    Array.from({ length: 20 }, (_, i) => (i + 1) * 1000),
  )
})
