import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Deque } from '../../src/general/deque.ts'

/** The plain array that a deque should be like. */
interface Both {
  deque: Deque<number>
  model: number[]
}

const ACTIONS: Record<string, (both: Both, n: number) => void> = {
  push: ({ deque, model }, n) => {
    deque.push(n)
    model.push(n)
  },
  unshift: ({ deque, model }, n) => {
    deque.unshift(n)
    model.unshift(n)
  },
  shift: ({ deque, model }) => assert.equal(deque.shift(), model.shift()),
  pop: ({ deque, model }) => assert.equal(deque.pop(), model.pop()),
  remove: ({ deque, model }, n) => {
    // Half of the time something that is there.
    const item = n % 2 === 0 ? (model[n % Math.max(model.length, 1)] ?? n) : n
    const at = model.indexOf(item)
    assert.equal(deque.remove(item), at >= 0)
    if (at >= 0) model.splice(at, 1)
  },
}

test('given any actions, a deque should be like an array', () => {
  const name = fc.constantFrom(
    'push',
    'push',
    'push',
    'unshift',
    'unshift',
    'shift',
    'shift',
    'pop',
    'remove',
  )
  const script = fc.array(fc.tuple(name, fc.nat(1000)), { maxLength: 150, size: 'max' })
  fc.assert(
    fc.property(script, list => {
      const both: Both = { deque: new Deque(), model: [] }
      for (const [action, n] of list) {
        ACTIONS[action]?.(both, n)
        const { deque, model } = both
        assert.equal(deque.size, model.length)
        assert.equal(deque.peek(), model[0])
        assert.equal(deque.peekLast(), model.at(-1))
        assert.deepEqual([...deque], model)
      }
    }),
    { numRuns: 400 },
  )
})

test('given an empty deque, we should get nothing from it', () => {
  const deque = new Deque<string>()
  assert.equal(deque.shift(), undefined)
  assert.equal(deque.peek(), undefined)
  assert.equal(deque.peekLast(), undefined)
  assert.equal(deque.remove('a'), false)
  assert.deepEqual([...deque], [])
})

test('given items that were taken, a deque should not hold on to them', async () => {
  const deque = new Deque<object>()
  for (let i = 0; i < 40; i++) deque.push({ i })
  const taken = Array.from({ length: 40 }, () => new WeakRef(deque.shift() as object))
  const { setFlagsFromString } = await import('node:v8')
  const { runInNewContext } = await import('node:vm')
  setFlagsFromString('--expose-gc')
  await new Promise(resolve => setTimeout(resolve, 0))
  runInNewContext('gc')()
  assert(taken.filter(ref => ref.deref()).length <= 1)
})
