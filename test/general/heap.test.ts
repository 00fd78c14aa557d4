import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Heap } from '../../src/general/heap.ts'
import { OrderedQueue } from '../../src/general/ordered-queue.ts'

interface Item {
  rank: number
  order: number
}

const before = (a: Item, b: Item): boolean => a.rank < b.rank || (a.rank === b.rank && a.order < b.order)

/** A rank to be pushed, or null to pop. */
const actions = fc.array(fc.option(fc.integer({ min: 0, max: 20 }), { freq: 2 }), {
  maxLength: 200,
  size: 'max',
})

const QUEUES = {
  Heap: () => new Heap(before),
  OrderedQueue: () => new OrderedQueue(before),
}
for (const [name, make] of Object.entries(QUEUES)) {
  test(`given any pushes and pops, a ${name} should give the least item each time`, () => {
    fc.assert(
      fc.property(actions, list => {
        const queue = make()
        const model: Item[] = []
        for (const [order, rank] of list.entries()) {
          if (rank === null) {
            model.sort((a, b) => (before(a, b) ? -1 : 1))
            assert.equal(queue.peek(), model[0])
            assert.equal(queue.pop(), model.shift())
          } else {
            const item = { rank, order }
            queue.push(item)
            model.push(item)
          }
          assert.equal(queue.size, model.length)
        }
        model.sort((a, b) => (before(a, b) ? -1 : 1))
        for (const item of model) assert.equal(queue.pop(), item)
        assert.equal(queue.pop(), undefined)
        assert.equal(queue.peek(), undefined)
        assert.equal(queue.size, 0)
      }),
      { numRuns: 500 },
    )
  })
}

test('given a heap, its iterator should give each item once', () => {
  const heap = new Heap<number>((a, b) => a < b)
  for (const n of [5, 3, 9, 1, 7]) heap.push(n)
  assert.deepEqual(
    [...heap].toSorted((a, b) => a - b),
    [1, 3, 5, 7, 9],
  )
})

const ORDERS: Record<string, (i: number) => number> = {
  rising: i => i,
  falling: i => -i,
  equal: () => 0,
}
for (const [name, rank] of Object.entries(ORDERS)) {
  test(`given ${name} ranks, an OrderedQueue should compare a few times per item, however many there are`, () => {
    let compared = 0
    const queue = new OrderedQueue<Item>((a, b) => {
      compared++
      return before(a, b)
    })
    const n = 100_000
    for (let i = 0; i < n; i++) queue.push({ rank: rank(i), order: i })
    for (let i = 0; i < n; i++) assert(queue.pop())
    assert(compared <= 3 * n, `${compared / n} comparisons per item`)
  })
}
