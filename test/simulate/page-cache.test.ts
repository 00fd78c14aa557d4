import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PageCache } from '../../src/simulate/machine/page-cache.ts'

test('what was written is read from the cache, until newer files have taken its room', () => {
  const cache = new PageCache(10)
  cache.write(1, 4)
  assert.equal(cache.read(1, 4), 4)
  cache.write(2, 6)
  cache.write(3, 4)
  assert.equal(cache.has(1), 0)
  assert.equal(cache.read(2, 6), 6)
})

test('of a large file that was not used for long only so much goes as room is needed', () => {
  const cache = new PageCache(10)
  cache.write(1, 8)
  cache.write(2, 5)
  assert.equal(cache.has(1), 5)
  assert.equal(cache.used, 10)
})

test('reading a file makes it the last to go', () => {
  const cache = new PageCache(10)
  cache.write(1, 5)
  cache.write(2, 5)
  cache.read(1, 5)
  cache.write(3, 5)
  assert.deepEqual([cache.has(1), cache.has(2), cache.has(3)], [5, 0, 5])
})

test('given any use, it holds what it says, never more than it can, and the last file as far as it fits', () => {
  const use = fc.record({
    what: fc.constantFrom('read', 'write', 'drop'),
    file: fc.nat(9),
    bytes: fc.integer({ min: 1, max: 30 }),
  })
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 50 }), fc.array(use), (capacity, uses) => {
      const cache = new PageCache(capacity)
      for (const { what, file, bytes } of uses) {
        const before = cache.has(file)
        if (what === 'read') assert.equal(cache.read(file, bytes), Math.min(bytes, before))
        else if (what === 'write') cache.write(file, bytes)
        else cache.drop(file)
        let sum = 0
        for (let one = 0; one < 10; one++) sum += cache.has(one)
        assert.equal(sum, cache.used)
        assert(cache.used <= capacity)
        assert.equal(cache.has(file), what === 'drop' ? 0 : Math.min(bytes, capacity))
      }
    }),
  )
})
