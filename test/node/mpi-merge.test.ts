import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { arraysIn, merge } from '../../src/node/mpi/rank-merge.ts'

const unit = fc.constantFrom(1, 2, 4, 8)
/** Which rank writes each element: none, the first, the second. */
const writers = fc.array(fc.constantFrom(0, 1, 2), { maxLength: 40 })

test('elements that one of two machines has written are joined, whatever their size', () => {
  fc.assert(
    fc.property(unit, writers, fc.infiniteStream(fc.nat(255)), (size, who, bytes) => {
      const fresh = (): Uint8Array =>
        Uint8Array.from({ length: who.length * size }, () => bytes.next().value as number)
      const before = fresh()
      const [one, two] = [before.slice(), before.slice()]
      const expected = before.slice()
      who.forEach((writer, i) => {
        const value = fresh().subarray(0, size)
        if (writer > 0) (writer === 1 ? one : two).set(value, i * size)
        if (writer > 0) expected.set(value, i * size)
      })
      assert.equal(merge(one, two, before, size), -1)
      assert.deepEqual(one, expected)
    }),
  )
})

test('an element that two have written differently is found, also where no byte is written by both', () => {
  fc.assert(
    fc.property(unit, fc.nat(30), fc.nat(30), (size, at, more) => {
      const before = new Uint8Array((at + more + 1) * size)
      const [one, two] = [before.slice(), before.slice()]
      one[at * size] = 1
      two[(at + 1) * size - 1] = 2
      assert.equal(merge(one, two, before, size), at)
      // The same value is no conflict.
      one.set(two)
      assert.equal(merge(one, two, before, size), -1)
    }),
  )
})

test('arrays are found wherever they are in a value, and only those in the given memory', () => {
  const memory = new ArrayBuffer(64)
  const [a, b, c] = [
    new Float64Array(memory, 0, 2),
    new Int8Array(memory, 16, 3),
    new Float32Array(memory, 32),
  ]
  const value: Record<string, unknown> = {
    a,
    list: [b, new Map([['c', c]]), new Float64Array(3), a],
    text: 'x',
  }
  value['self'] = value
  assert.deepEqual([...arraysIn(value, [memory])], [a, b, c])
})
