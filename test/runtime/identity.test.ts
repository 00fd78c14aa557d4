import assert from 'node:assert/strict'
import test from 'node:test'
import { cancel, configure, group, reduce, ref, shared, task, waitOn, waitOnFile } from 'millrace'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { appendText } from '../fixtures/graph-tasks.ts'
import { holds } from '../fixtures/random-tasks.ts'
import * as tasks from '../fixtures/graph-tasks.ts'
import type { Item, Views } from '../fixtures/graph-tasks.ts'
import { rejection, temporaryFolder, thrown, until } from './embedded.ts'

// Without main, classes are known from the first wait on.
await tasks.sum([])

const items = (...numbers: number[]): Item[] => numbers.map(n => ({ n }))

test('objects that tasks move in a list keep their identity', async () => {
  const list = items(3, 1, 2)
  const [three, one, two] = list as [Item, Item, Item]
  tasks.reverse(list)
  await waitOn(list)
  assert(list[0] === two && list[1] === one && list[2] === three)
  tasks.sort(list)
  tasks.reverse(list)
  tasks.sort(list)
  await waitOn(list)
  assert(list[0] === one && list[1] === two && list[2] === three)
  assert.deepEqual([one.n, two.n, three.n], [1, 2, 3])
  tasks.splice(list)
  await waitOn(list)
  assert(list[0] === one && list[1] !== two && list[2] === three)
  // What a task took out has what the task did to it.
  assert.equal(two.n, -1)
})

test('what a task made keeps its identity from the first wait on', async () => {
  const list = items(1)
  tasks.append(list, 2)
  tasks.append(list, 3)
  await waitOn(list)
  const [one, two, three] = list
  tasks.reverse(list)
  tasks.append(list, 4)
  await waitOn(list)
  assert(list[0] === three && list[1] === two && list[2] === one && list[3]?.n === 4)
})

test('maps, sets, properties: what moved is what it was, in the new order', async () => {
  const [a, b] = items(1, 2) as [Item, Item]
  const map = new Map([
    ['a', a],
    ['b', b],
  ])
  tasks.turnMap(map)
  await waitOn(map)
  assert.deepEqual([...map.keys()], ['b', 'a', 'new'])
  assert(map.get('a') === a && map.get('b') === b)
  const pair: Record<string, Item> = { a, b }
  tasks.swapKeys(pair)
  await waitOn(pair)
  assert(pair['a'] === b && pair['b'] === a)
  assert.deepEqual(Object.keys(pair), ['b', 'a'])
  const set = new Set([a, b])
  tasks.turnSet(set)
  await waitOn(set)
  assert([...set][0] === b && [...set][1] === a)
  assert.deepEqual([a.n, b.n], [2, 4])
})

test('cycles and shared parts that a task makes lead to the objects of the program', async () => {
  const parent: Item = { n: 0 }
  tasks.adopt(parent)
  tasks.adopt(parent)
  await waitOn(parent)
  assert.equal(parent.kids?.length, 4)
  assert(parent.kids?.every(kid => kid.parent === parent))
  assert(parent.kids?.[0] === parent.kids?.[1] && parent.kids?.[1] !== parent.kids?.[2])
  const tree = new tasks.Tree(5)
  tasks.graft(tree)
  await waitOn(tree)
  const [kid] = tree.kids
  tasks.graft(tree)
  await waitOn(tree)
  assert(tree.kids[1] === kid && kid instanceof tasks.Tree && kid.parent === tree)
})

test('the whole is up to date after a part was written', async () => {
  const list = items(1, 2)
  tasks.increaseAll(list)
  await waitOn(list)
  tasks.increase(list[1] as Item)
  await waitOn(list)
  assert.deepEqual(list, items(2, 4))
  for (const holder of [new Map([['x', list[0]]]), new Set([list[0]]), { deep: { in: list[0] } }]) {
    const before = list[0]?.n as number
    tasks.increase(list[0] as Item)
    await waitOn(holder)
    assert.equal(list[0]?.n, before + 1)
  }
  const map = new Map([['x', { n: 1 }]])
  tasks.turnMap(map)
  await waitOn(map)
  tasks.increase(map.get('x') as Item)
  assert.equal(await tasks.sum(map), 2 + 7)
  const tree = new tasks.Tree(1)
  tree.kids.push(new tasks.Tree(1))
  tasks.increase(tree)
  await waitOn(tree)
  tasks.increase(tree.kids[0] as Item)
  assert.equal(await tasks.sum(tree.kids), 2)
  tasks.increase(tree.kids[0] as Item)
  await waitOn(tree)
  assert.equal(tree.kids[0]?.n, 3)
})

test('objects that were passed by themselves before can be moved as well', async () => {
  const list = items(1, 2)
  const [a, b] = list
  tasks.increase(a as Item)
  tasks.increase(b as Item)
  await waitOn(list)
  tasks.reverse(list)
  await waitOn(list)
  assert(list[0] === b && list[1] === a)
})

test('what is no longer part of an object is free', async () => {
  const list = items(1, 2)
  const two = list[1] as Item
  tasks.splice(list)
  await waitOn(list)
  tasks.increaseAll(list)
  tasks.increase(two)
  await waitOn([two, list])
  assert.equal(two.n, 0)
})

test('a result is complete when what its task called is', async () => {
  const list = items(1, 2)
  const [one, two] = list
  tasks.outer(list)
  await waitOn(list)
  assert(list[0] === two && list[1] === one && list[2]?.n === 50)
  tasks.deep(list)
  await waitOn(list)
  assert.deepEqual(
    list.map(item => item.n),
    [50, 1, 2, 50],
  )
  assert(list[1] === one && list[2] === two)
  tasks.outerPart(list)
  await waitOn(list)
  assert.equal(one?.n, 2)
  const made = await tasks.local()
  assert.deepEqual(made.made, items(2, 3))
  assert.equal(made.made, made.same)
  const out = items(9)
  tasks.outerOut(out)
  await waitOn(out)
  assert.deepEqual(out, items(1, 2))
  assert.equal(await tasks.waits(list), true)
  await waitOn(list)
  assert.equal(list.at(-1)?.n, 1051)
})

test('views of one buffer are views of one buffer in the task, and after it', async () => {
  const buffer = new ArrayBuffer(16)
  const views: Views = { bytes: new Uint8Array(buffer), words: new Uint32Array(buffer, 0, 2), buffer }
  assert.equal(await tasks.writeViews(views), 1)
  await waitOn(views)
  assert.equal(views.tail?.buffer, buffer)
  assert.deepEqual([...views.bytes.subarray(0, 6)], [1, 1, 1, 1, 9, 0])
  assert(views.words.buffer === buffer && views.bytes.buffer === buffer && views.buffer === buffer)
  const large = new ArrayBuffer(100_000)
  const more: Views = { bytes: new Uint8Array(large, 8), words: new Uint32Array(large, 8) }
  assert.equal(await tasks.writeViews(more), 1)
  await waitOn(more)
  assert.equal(more.bytes[0], 1)
  assert.equal(more.tail?.buffer, large)
  assert.equal(more.tail?.byteOffset, 12)
})

test('parts of one memory are not written where no view is', async () => {
  const memory = new Uint8Array(64)
  const views = { bytes: memory.subarray(0, 8), words: new Uint32Array(memory.buffer, 32, 2) }
  tasks.writeViews(views)
  memory[20] = 77
  await waitOn(views)
  assert.deepEqual([memory[4], memory[20], memory[32]], [9, 77, 1])
})

test('bare shared memory is one memory', async () => {
  const memory = new SharedArrayBuffer(8)
  tasks.fillMemory(memory)
  const first = tasks.readMemory(memory)
  await waitOn(memory)
  assert.equal(new Uint8Array(memory)[7], 5)
  assert.equal(await first, 5)
})

test('errors and the place of a pattern come back', async () => {
  const tag: Item = { n: 1 }
  const error: Error & { tag?: Item } = new RangeError('before')
  error.tag = tag
  tasks.changeError(error)
  await waitOn(error)
  assert.equal(error.message, 'changed')
  assert(error.cause === tag && !('tag' in error))
  assert.match(String(error.stack), /before/)
  const pattern = /X/g
  tasks.search(pattern)
  tasks.search(pattern)
  await waitOn(pattern)
  assert.equal(pattern.lastIndex, 4)
  const dated = Object.assign(new Date(), { extra: 1 })
  assert.equal(thrown(() => tasks.sum([dated as unknown as Item])).code, 'MR_NOT_CLONEABLE')
})

test('a refused call leaves no marks', async () => {
  const item: Item = { n: 1 }
  const bad = { socket: () => 1 }
  assert.equal(thrown(() => tasks.both(item, bad)).code, 'MR_NOT_CLONEABLE')
  item.n = 5
  assert.equal(await waitOn(item), item)
  assert.equal(item.n, 5)
  const whole = { item }
  assert.equal(thrown(() => tasks.both(whole as unknown as Item, bad)).code, 'MR_NOT_CLONEABLE')
  tasks.increase(item)
  await waitOn(whole)
  assert.equal(item.n, 6)
  const row = new Float64Array(4)
  assert.equal(thrown(() => tasks.both(row as unknown as Item, bad)).code, 'MR_NOT_CLONEABLE')
  tasks.scaleRow(row.subarray(1))
})

test('a task that changes which arrays are in a collection is told', async () => {
  const rows = [new Float64Array(2).fill(1), new Float64Array(2).fill(2)]
  for (const row of rows) tasks.scaleRow(row)
  const error = await rejection(tasks.rename(rows))
  assert.equal(error.cause.code, 'MR_ALIAS')
  const again = [new Float64Array(2).fill(1), new Float64Array(2).fill(2)]
  const [first, second] = again
  tasks.rename(again)
  await waitOn(again)
  assert(again[0] === second && again[1] === first)
})

test('a future in a returned object is named for what it is', async () => {
  const error = await rejection(tasks.holdsFuture())
  assert.match(error.cause.message, /future/)
})

test('after a group was cancelled, later tasks have what was there before', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'log.txt')
  writeFileSync(path, '')
  const item: Item = { n: 1 }
  appendText(path, '1')
  tasks.increase(item)
  const gate = shared(Int32Array, 1)
  await group('cancelled', async () => {
    const held = holds(gate)
    appendText(path, '3', held)
    tasks.both(item, held)
    await until(() => Atomics.load(gate, 0) === 1, 'the task that holds')
    await cancel('cancelled')
  })
  for (let i = 0; i < 3; i++) appendText(path, '2')
  tasks.increase(item)
  assert.equal(readFileSync(await waitOnFile(path), 'utf8'), '1222')
  await waitOn(item)
  assert.equal(item.n, 3)
})

test('a wait that throws leaves the last good version at the path', async () => {
  const path = join(temporaryFolder(), 'log.txt')
  writeFileSync(path, '')
  appendText(path, '1')
  appendText(path, '2', 'fail')
  await rejection(waitOnFile(path))
  assert.equal(readFileSync(path, 'utf8'), '1')
})

test('what is used in a wrong way is refused with a code', async () => {
  const missing = join(temporaryFolder(), 'missing')
  assert.equal((await rejection(waitOnFile(missing))).code, 'MR_INPUT_MISSING')
  assert.equal(thrown(() => configure({ cpus: 1 })).code, 'MR_OPTION')
  const wrong = thrown(() => task((() => 1) as never, undefined as never))
  assert.match(wrong.message, /options come first/)
  assert.equal(thrown(() => void group((() => 1) as never, undefined as never)).code, 'MR_OPTION')
  assert.equal(thrown(() => appendText(`x${'y'.repeat(300)}`, '')).code, 'MR_PATH')
  const bound = thrown(() => tasks.sized(tasks.sum([])))
  assert.equal(bound.code, 'MR_NOT_AWAITED')
  assert.match(bound.message, /task sized/)
})

test('futures in maps and sets are waited for', async () => {
  const map = new Map([['a', tasks.sum([{ n: 1 }])]])
  const set = new Set([tasks.sum([{ n: 2 }])])
  assert.deepEqual(await waitOn(map), new Map([['a', 1]]))
  assert.deepEqual(await waitOn({ set }), { set: new Set([2]) })
})

test('a list is reduced in a tree, in its order', async () => {
  for (const count of [1, 2, 3, 7, 16]) {
    const list = Array.from({ length: count }, (_, i) =>
      i % 2 ? tasks.letter(i) : String.fromCharCode(97 + i),
    )
    assert.equal(await reduce(tasks.concat, list), 'abcdefghijklmnop'.slice(0, count))
  }
  assert.equal(thrown(() => reduce(tasks.concat, [])).code, 'MR_OPTION')
})

test('a box lets tasks write a number', async () => {
  const count = ref(0)
  for (let i = 0; i < 3; i++) tasks.count(count)
  assert.equal((await waitOn(count)).value, 3)
})
