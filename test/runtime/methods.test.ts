import assert from 'node:assert/strict'
import test from 'node:test'
import { TaskError, barrier, task, taskMethods, waitOn } from 'millrace'
import { Block, Counter, Larger } from '../fixtures/method-tasks.ts'
import { rejection, thrown } from './embedded.ts'

// Without main, classes are known from the first wait on.
await Counter.of(0)

test('methods are tasks, in the order of the program, on the program’s own objects', async () => {
  const [a, b, c] = [new Block(2), new Block(2), new Block(2)] as [Block, Block, Block]
  a.fill(2)
  b.fill(3)
  c.multiplyAdd(a, b)
  c.multiplyAdd(a, b)
  const { values } = c
  assert.equal(await waitOn(c), c)
  assert.equal(c.values, values)
  assert.deepEqual([...c.values], [24, 24, 24, 24])
  assert.equal(await c.norm(), 48)
})

test('`this` is INOUT unless the options say IN', async () => {
  const block = new Block(1)
  block.fill(4)
  block.spoil()
  await barrier()
  await waitOn(block)
  assert.equal(block.values[0], 4)
})

test('instances keep their class and identity', async () => {
  const [from, to] = [new Block(1), new Block(1)]
  from.fill(7)
  from.give(to)
  from.link()
  await waitOn([from, to])
  assert.deepEqual([from.values[0], to.values[0]], [0, 7])
  assert.equal(from.neighbour, from)
  const identity = await Block.identity(2)
  assert.ok(identity instanceof Block)
  assert.deepEqual([...identity.values], [1, 0, 0, 1])
  identity.fill(5)
  await waitOn(identity)
  assert.deepEqual([...identity.values], [5, 5, 5, 5])
})

test('a method that is a task may call others of its object', async () => {
  const block = new Block(1)
  await block.fillTwice(1)
  await waitOn(block)
  assert.equal(block.values[0], 2)
})

test('without decorators, and in classes above', async () => {
  const larger = new Larger()
  larger.add(2)
  larger.add(3)
  assert.equal(await larger.get(), 5)
  await waitOn(larger)
  assert.ok(larger instanceof Larger)
  assert.deepEqual([larger.count, larger.factor], [5, 2])
  assert.equal((await Counter.of(9)).count, 9)
})

test('errors name the class and the method', async () => {
  const error = await rejection(Promise.resolve(new Block(1).fail() as unknown))
  assert.ok(error instanceof TaskError)
  assert.match(error.message, /^Block\.fail#\d+ failed: no block/)
  const frozen = Object.freeze(new Block(1))
  assert.match(thrown(() => frozen.fill(1)).message, /^this of Block\.fill: /)
  assert.match(thrown(() => new Block(1).fill((() => 1) as never)).message, /^argument 1 of Block\.fill: /)
})

test('what is no method is refused', () => {
  assert.equal(thrown(() => task({})(5 as never, undefined as never)).code, 'MR_OPTION')
  assert.equal(thrown(() => taskMethods(Counter, { nothing: {} } as never)).code, 'MR_OPTION')
  assert.equal(thrown(() => taskMethods(Counter, { add: {} })).code, 'MR_OPTION')
  class Other {
    run(): void {}
  }
  assert.equal(thrown(() => taskMethods(Other, { run: { this: 'OUT' as never } })).code, 'MR_DIRECTION')
  assert.equal(thrown(() => taskMethods(Other, { run: { cpu: 1 } as never })).code, 'MR_OPTION')
})
