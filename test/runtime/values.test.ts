import assert from 'node:assert/strict'
import test from 'node:test'
import { Future, barrier, cancel, group, remove, shared, waitOn } from 'millrace'
import * as tasks from '../fixtures/tasks.ts'
import type { Box } from '../fixtures/tasks.ts'
import { rejection, thrown } from './embedded.ts'
import { newGate, open, reached } from './gates.ts'

const LARGE = 10_000

test('a call returns a future that can be awaited, passed on, and awaited again', async () => {
  const three = tasks.add(1, 2)
  assert(three instanceof Future)
  assert.equal(await tasks.add(three, three), 6)
  assert.equal(await three, 3)
  assert.equal(await three, 3)
  assert.equal(await three.then(value => value + 1), 4)
  assert.equal(await waitOn(three), 3)
})

test('a future in the place of its value throws, in sums, texts, keys and JSON', async () => {
  const sum = tasks.add(1, 2)
  const three = sum as unknown as number
  const uses = [
    () => three + 1,
    () => three < 4,
    () => `part-${three}.txt`,
    () => ({ [three]: 1 }),
    () => ['a', 'b'][three],
    () => JSON.stringify({ three }),
  ]
  for (const use of uses) assert.equal(thrown(use).code, 'MR_NOT_AWAITED', String(use))
  assert.equal(await sum, 3)
})

test('values of many small parts come through, each time as they were', async () => {
  const rows = Array.from({ length: 60 }, (_, i) => new Float64Array(200).fill(i))
  const sum = 200 * 1770
  tasks.scaleAll(rows, 1)
  const read = [tasks.totals(rows), tasks.totals(rows)]
  tasks.scaleAll(rows, 2)
  assert.deepEqual(await waitOn(read), [sum, sum])
  const kept = tasks.identity(rows)
  assert.equal(await tasks.totals(kept as unknown as Float64Array[]), 2 * sum)
  await waitOn(rows)
  assert.deepEqual(rows, await kept)
  assert(rows.every((row, i) => row.every(x => x === i * 2)))
})

test('a large array is copied once for many calls, and again only when it has changed', async () => {
  const native = SharedArrayBuffer
  let copies = 0
  const counted = new Proxy(native, {
    construct: (target, args: [number]) => {
      if (args[0] >= LARGE * 8) copies++
      return Reflect.construct(target, args) as SharedArrayBuffer
    },
  })
  const array = new Float64Array(LARGE).fill(1)
  const pair = [new Float64Array(LARGE).fill(2), new Float64Array(LARGE).fill(3)]
  const sums: Future<number>[] = []
  globalThis.SharedArrayBuffer = counted
  try {
    for (let i = 0; i < 5; i++) sums.push(tasks.total(array), tasks.totals(pair))
    assert.equal(copies, 3)
    array[7] = 5
    for (let i = 0; i < 5; i++) sums.push(tasks.total(array))
    assert.equal(copies, 4)
  } finally {
    globalThis.SharedArrayBuffer = native
  }
  ;(pair[1] as Float64Array)[0] = 4
  sums.push(tasks.totals(pair))
  assert.deepEqual(await waitOn(sums), [
    ...Array.from({ length: 5 }, () => [LARGE, 5 * LARGE]).flat(),
    ...Array.from({ length: 5 }, () => LARGE + 4),
    5 * LARGE + 1,
  ])
  tasks.scale(array, 2)
  await waitOn(array)
  tasks.scale(array, 2)
  array[0] = 9
  await waitOn(array)
  assert.equal(array[0], 4)
  array[0] = 9
  tasks.scale(array, 2)
  assert.equal((await waitOn(array))[0], 18)
})

test('values of every primitive type come through', async () => {
  for (const value of [
    0,
    -0,
    1.5,
    NaN,
    Infinity,
    -(2 ** 31),
    2 ** 53,
    '',
    'text',
    'é\ud800',
    true,
    false,
    null,
    undefined,
    10n ** 30n,
  ]) {
    assert.deepEqual(await tasks.identity(value), value)
  }
})

test('an object is captured at the call', async () => {
  const box: Box = { n: 1 }
  const before = tasks.readBox(box)
  box.n = 2
  const after = tasks.readBox(box)
  box.n = 3
  assert.deepEqual([await before, await after, box.n], [1, 2, 3])
})

test('a large array is captured at each call', async () => {
  const array = new Float64Array(LARGE).fill(1)
  const sums = [tasks.total(array)]
  array.fill(2)
  sums.push(tasks.total(array))
  sums.push(tasks.total(array))
  array.fill(3)
  assert.deepEqual(await waitOn(sums), [LARGE, 2 * LARGE, 2 * LARGE])
})

test('an array from a task is captured again when the program has changed it', async () => {
  const array = await tasks.makeArray(LARGE, 1)
  const sums = [tasks.total(array)]
  array.fill(2)
  sums.push(tasks.total(array), tasks.total(array))
  assert.deepEqual(await waitOn(sums), [LARGE, 2 * LARGE, 2 * LARGE])
})

test('an array that a running task was lent can be passed again', async () => {
  const one = newGate()
  const future = tasks.makeArray(LARGE, 1)
  const array = await future
  const first = tasks.totalAfter(array, one)
  await reached(one)
  const second = tasks.total(array)
  const third = tasks.total(future)
  open(one)
  assert.deepEqual([await first, await second, await third], [LARGE, LARGE, LARGE])
})

test('waitOn brings an object up to date in place, with the objects inside it', async () => {
  const list = [1]
  const inner = { list }
  const box: Box = { n: 1, inner }
  tasks.bump(box)
  tasks.bump(box)
  assert.equal(box.n, 1)
  assert.equal(await waitOn(box), box)
  assert.deepEqual(box, { n: 3, inner: { list: [1] } })
  assert.equal(box.inner, inner)
  assert.equal(box.inner.list, list)
})

test('waitOn replaces futures in arrays and objects and keeps their identity', async () => {
  const list = [tasks.add(1, 2), 5, [tasks.add(3, 4)]]
  assert.equal(await waitOn(list), list)
  assert.deepEqual(list, [3, 5, [7]])
  const holder = { a: tasks.add(1, 1), b: { c: tasks.add(2, 2) } }
  assert.equal(await waitOn(holder), holder)
  assert.deepEqual(holder, { a: 2, b: { c: 4 } })
})

test('what came is filled in although something else failed, and the first failure is thrown', async () => {
  const list = [tasks.add(1, 2), tasks.failsQuietly('first'), [tasks.add(3, 4)], tasks.failsQuietly('second')]
  const error = await rejection(waitOn(list))
  assert.match(error.message, /first/)
  assert.deepEqual([list[0], list[2]], [3, [7]])
})

test('what the program changes while it waits is left as it is, and setters may call tasks', async () => {
  const [gate, known, other] = [newGate(), {}, {}]
  let given: Future<number> | null = null
  const holder = {
    known: known as object,
    get sum(): unknown {
      return tasks.add(1, 2)
    },
    set sum(value: number) {
      given = tasks.add(value, 1)
    },
    late: tasks.wait(gate, 5),
  }
  const waiting = waitOn(holder)
  holder.known = other
  open(gate)
  await waiting
  assert.equal(holder.known, other)
  assert(given)
  assert.equal(await (given as Future<number>), 4)
})

test('objects inside an array that is waited for are brought up to date', async () => {
  const boxes: Box[] = [{ n: 0 }, { n: 10 }]
  const [first, second] = boxes as [Box, Box]
  for (const box of boxes) tasks.bump(box)
  await waitOn(boxes)
  assert.deepEqual(boxes, [{ n: 1 }, { n: 11 }])
  assert.equal(boxes[0], first)
  assert.equal(boxes[1], second)
})

test('waitOn of something with a cycle that no task knows ends', async () => {
  const cyclic: { self?: unknown; f: unknown } = { f: tasks.add(1, 2) }
  cyclic.self = cyclic
  assert.equal(await waitOn(cyclic), cyclic)
  assert.equal(cyclic.f, 3)
})

test('an object with a cycle can be read and written', async () => {
  const box: Box = { n: 1 }
  box.self = box
  assert.equal(await tasks.readBox(box), 1)
  tasks.bump(box)
  await waitOn(box)
  assert.equal(box.n, 2)
  assert.equal(box.self, box)
})

test('futures inside arrays and objects become values', async () => {
  assert.equal(await tasks.sum([tasks.add(1, 2), 4, tasks.add(3, 5)]), 15)
  assert.equal(await tasks.pick({ a: tasks.add(1, 1), deep: [{ b: tasks.add(20, 20) }] }), 42)
})

test('INOUT on a future changes what the future gives', async () => {
  const made = tasks.makeArray(4, 1)
  tasks.scale(made, 5)
  assert.deepEqual(await made, new Float64Array(4).fill(5))
  const same = await made
  tasks.scale(made, 2)
  assert.equal(await made, same)
  assert.deepEqual(same, new Float64Array(4).fill(10))
})

test('a future that is awaited and written before it is there gives the value of its time', async () => {
  for (const length of [4, LARGE]) {
    const made = tasks.makeArray(length, 1)
    const early = made.then(array => array[0])
    tasks.scale(made, 5)
    assert.equal(await early, 1)
    assert.equal((await made)[0], 5)
  }
})

test('an object that is written again while it is waited for is still out of date', async () => {
  const box: Box = { n: 0 }
  const one = newGate()
  tasks.bumpAfter(box, one)
  const waiting = waitOn(box)
  tasks.bump(box)
  open(one)
  await waiting
  await waitOn(box)
  assert.equal(box.n, 2)
})

test('the same object twice in one call is one object', async () => {
  const box: Box = { n: 1 }
  assert.equal(await tasks.both(box, box), true)
  assert.equal(await tasks.twice(box, box), true)
  await waitOn(box)
  assert.equal(box.n, 11)
  tasks.mergeInto(box, box)
  await waitOn(box)
  assert.equal(box.n, 22)
})

test('a reader of an older version is not disturbed by a writer', async () => {
  const box: Box = { n: 1 }
  const one = newGate()
  const old = tasks.readBoxAfter(box, one)
  await reached(one)
  tasks.bump(box)
  assert.equal((await waitOn(box)).n, 2)
  open(one)
  assert.equal(await old, 1)
})

test('a reader of an older version of a large array is not disturbed by a writer', async () => {
  const array = tasks.makeArray(LARGE, 1)
  const one = newGate()
  const old = tasks.totalAfter(array, one)
  await reached(one)
  tasks.scale(array, 2)
  const fresh = tasks.total(array)
  open(one)
  assert.deepEqual([await old, await fresh], [LARGE, 2 * LARGE])
})

test('an object that holds a future beside other values cannot be written', () => {
  const error = thrown(() => tasks.bump({ n: 1, self: tasks.add(1, 2) }))
  assert.deepEqual([error.code, /beside other values/.test(error.message)], ['MR_DIRECTION', true])
})

test('a part of an object that a task writes is passed to others as the task leaves it', async () => {
  const inner = { n: 1, inner: { list: [1] } }
  const box = { n: 1, inner } as unknown as Box
  tasks.bump(box)
  tasks.bump(inner)
  const read = tasks.identity(inner)
  tasks.bump(box)
  tasks.bump(inner)
  assert.deepEqual(await read, { n: 2, inner: { list: [1] } })
  assert.equal(await waitOn(inner), inner)
  assert.deepEqual([box.n, inner.n, Object.is(box.inner, inner)], [3, 3, true])
  const error = thrown(() => tasks.bump({ n: 1, inner: [(tasks.bump(box), inner)] } as unknown as Box))
  assert.equal(error.code, 'MR_ALIAS')
  assert.match(error.shortMessage, /^argument 1 of bump: the object is part of another/)
})

test('what a task writes into an object beside an array that was passed before is not lost', async () => {
  const holder = { n: 1, data: new Float64Array(LARGE).fill(1) }
  await tasks.total(holder.data)
  tasks.bump(holder)
  await waitOn(holder)
  assert.equal(holder.n, 2)
})

test('parts of shared memory may be equal or disjoint, not overlapping', async () => {
  const whole = shared(Float64Array, 100)
  tasks.fill(whole.subarray(0, 50), 1)
  tasks.fill(whole.subarray(50), 2)
  assert.equal(thrown(() => tasks.total(whole)).code, 'MR_ALIAS')
  assert.equal(await tasks.total(whole.subarray(0, 50)), 50)
  assert.equal(await tasks.total(whole.subarray(50)), 100)
})

test('a shared array is written in place, in order, and never copied', async () => {
  const array = shared(Float64Array, LARGE)
  tasks.fill(array, 2)
  const first = tasks.total(array)
  tasks.scale(array, 3)
  const second = tasks.total(array)
  assert.equal(await waitOn(array), array)
  assert.equal(array[LARGE - 1], 6)
  assert.deepEqual([await first, await second], [2 * LARGE, 6 * LARGE])
})

test('OUT gives the task zeros of the right size, or the object as it is', async () => {
  const array = new Float64Array(8).fill(9)
  tasks.fill(array, 3)
  assert.equal(await tasks.total(array), 24)
  await waitOn(array)
  assert.deepEqual(array, new Float64Array(8).fill(3))
  const box: Box = { n: 5, inner: { list: [1, 2] } }
  tasks.fillBox(box, 8)
  await waitOn(box)
  assert.deepEqual(box, { n: 8, inner: { list: [1, 2] } })
})

test('INOUT on an array of arrays writes each of them', async () => {
  const arrays = [tasks.makeArray(4, 1), tasks.makeArray(LARGE, 2)]
  tasks.scaleAll(arrays, 10)
  assert.equal(await tasks.totals(arrays), 40 + 20 * LARGE)
  const plain = [new Float64Array(4).fill(1), new Float64Array(LARGE).fill(2)]
  tasks.scaleAll(plain, 10)
  await waitOn(plain)
  assert.deepEqual([plain[0]?.[3], plain[1]?.[9]], [10, 20])
})

test('a task that ends its thread does not take with it the array that it reads', async () => {
  const array = tasks.makeArray(LARGE, 1)
  await barrier()
  assert.match(String(await rejection(tasks.exitsWith(array))), /MR_THREAD_DIED/)
  assert.equal(await tasks.total(array), LARGE)
})

test('CONCURRENT tasks write one array together', async () => {
  for (const array of [shared(Int32Array, 16), new Int32Array(LARGE)]) {
    for (let i = 1; i <= 20; i++) tasks.addConcurrently(array, i)
    await waitOn(array)
    assert.deepEqual([array[0], array.at(-1)], [210, 210])
  }
})

test('CONCURRENT tasks write what others read before them, and both have their own', async () => {
  for (const array of [shared(Int32Array, 16), new Int32Array(LARGE)]) {
    tasks.addConcurrently(array, 1)
    const gate = newGate()
    const old = array.buffer instanceof SharedArrayBuffer ? null : tasks.firstAfter(array, gate)
    if (old) await reached(gate)
    tasks.addConcurrently(array, 2)
    tasks.addConcurrently(array, 3)
    const fresh = tasks.firstAfter(array, null)
    assert.equal(await fresh, 6)
    open(gate)
    if (old) assert.equal(await old, 1)
    assert.equal((await waitOn(array))[0], 6)
  }
})

test('CONCURRENT is refused on what cannot be shared', () => {
  assert.equal(thrown(() => tasks.addConcurrently(new Int32Array(4), 1)).code, 'MR_DIRECTION')
})

test('COMMUTATIVE tasks of two functions exclude each other', async () => {
  const box: Box = { n: 0 }
  const one = newGate()
  for (let i = 1; i <= 30; i++) (i % 2 ? tasks.addCommutative : tasks.addOtherwise)(box, i, one)
  await waitOn(box)
  assert.equal(box.n, 465)
  assert.equal(one[tasks.REACHED], 0)
})

test('returns: 2 gives two futures', async () => {
  const [plus, times] = tasks.two(3, 4)
  assert.equal(await tasks.add(plus, times), 19)
  assert.deepEqual([await plus, await times], [7, 12])
})

test('returns: 2 with another number of values fails and says so', async () => {
  const [first] = tasks.badReturns(3)
  const error = await rejection(first)
  assert.equal(error.code, 'MR_OPTION')
  assert.match(error.message, /returns: 2, but returned an array of 3/)
})

test('class instances keep their class, both ways', async () => {
  // Without main the modules of tasks are loaded when the first call is made.
  await tasks.add(1, 1)
  const point = new tasks.Point(3, 4)
  assert.equal(await tasks.lengthOf(point), 5)
  const made = await tasks.makePoint(6, 8)
  assert(made instanceof tasks.Point)
  assert.equal(made.length(), 10)
  tasks.move(point)
  await waitOn(point)
  assert(point instanceof tasks.Point)
  assert.equal(point.x, 4)
  assert.equal(await tasks.lengthOf(tasks.makePoint(0, 1)), 1)
})

test('what cannot cross to a thread is refused with the path to it', async () => {
  class Local {}
  const cases: [unknown, RegExp][] = [
    [() => 1, /argument 1 of identity: the value is a function/],
    [{ a: [1, { b: Symbol('s') }] }, /the value at \.a\[1\]\.b is a symbol/],
    [new Local(), /an instance of Local, which no task module exports/],
    [new tasks.Secret(1), /Secret, which has private #fields/],
    [{ p: Promise.resolve(1) }, /the value at \.p is a promise/],
    [new WeakMap(), /WeakMap/],
    [new Map([['k', () => 1]]), /\(key k\)/],
  ]
  await tasks.add(1, 1)
  for (const [value, message] of cases) {
    const error = thrown(() => tasks.identity(value))
    assert.equal(error.code, 'MR_NOT_CLONEABLE')
    assert.match(error.shortMessage, message)
  }
})

test('an instance of an exported error class keeps its class, both ways', async () => {
  await tasks.add(1, 1)
  const back = (await tasks.identity(new tasks.OwnError('keep this', 7))) as tasks.OwnError
  assert(back instanceof tasks.OwnError)
  assert.deepEqual([back.message, back.detail], ['keep this', 7])
})

test('a result that cannot cross fails the task with the path to it', async () => {
  const error = await rejection(tasks.returnsFunction())
  assert.equal(error.code, 'MR_NOT_CLONEABLE')
  assert.match(
    error.message,
    /result of returnsFunction: the value at \.list\[1\]\.deep is a function \(deep\)/,
  )
})

test('a removed value cannot be used', async () => {
  const future = tasks.makeArray(4, 1)
  await future
  remove(future)
  assert.equal(thrown(() => tasks.total(future)).code, 'MR_REMOVED')
  const box: Box = { n: 1 }
  tasks.bump(box)
  const read = tasks.readBox(box)
  remove(box)
  assert.equal(thrown(() => tasks.readBox(box)).code, 'MR_REMOVED')
  assert.equal(await read, 2)
  const array = shared(Float64Array, 4)
  await tasks.total(array)
  remove(array)
  assert.equal(thrown(() => tasks.total(array)).code, 'MR_REMOVED')
})

test('wrong arguments are refused at the call', () => {
  const call = (call: unknown, ...args: unknown[]): string =>
    thrown(() => (call as (...args: unknown[]) => unknown)(...args)).code
  assert.equal(call(tasks.bump, 5), 'MR_DIRECTION')
  assert.equal(call(tasks.bump, null), 'MR_DIRECTION')
  assert.equal(call(tasks.bump), 'MR_DIRECTION')
  assert.equal(call(tasks.bump, {}, {}), 'MR_DIRECTION')
  assert.equal(call(tasks.bump, Object.freeze({ n: 1 })), 'MR_DIRECTION')
  assert.equal(call(tasks.readText, 5), 'MR_DIRECTION')
  assert.equal(call(tasks.readText, ''), 'MR_DIRECTION')
  assert.equal(call(tasks.readText, tasks.add(1, 2)), 'MR_DIRECTION')
})

test('what is frozen is waited for, too', async () => {
  const futures = Object.freeze([tasks.add(1, 2), Object.freeze({ sum: tasks.add(3, 4) })])
  assert.deepEqual(await waitOn(futures), [3, { sum: 7 }])
})

test('tasks of a new kind arrive in any order when there are more than the ring to a thread can hold', async () => {
  const pages = Array.from({ length: 2000 }, (_, i) => tasks.firstOfPage(tasks.pageOf(i)))
  assert.deepEqual(
    await waitOn(pages),
    pages.map((_, i) => i),
  )
})

test('async functions are tasks too', async () => {
  const futures = Array.from({ length: 20 }, (_, i) => tasks.asyncAdd(i, 1))
  assert.equal(await tasks.sum(futures), 210)
})

test('a deep list is refused or comes through, and the run goes on', async () => {
  let list: unknown = null
  for (let i = 0; i < 200_000; i++) list = { list }
  const outcome = await Promise.resolve()
    .then(() => tasks.identity(list))
    .then(() => 'came through')
    .catch((error: { code?: string; name: string }) => error.code ?? error.name)
  assert.ok(['came through', 'MR_NOT_CLONEABLE'].includes(outcome), outcome)
  assert.equal(await tasks.add(1, 2), 3)
})

test('barrier waits for all, cancel of an unknown group says what there is', async () => {
  const one = newGate()
  for (let i = 0; i < 10; i++) tasks.countIn(one)
  await barrier()
  assert.equal(one[tasks.COUNT], 10)
  await group('projection', async () => {
    const error = await rejection(cancel('projectoin'))
    assert.equal(error.code, 'MR_GROUP')
    assert.match(error.message, /did you mean 'projection'/)
  })
})

test('parts of one plain buffer are the same datum where they are equal', async () => {
  const matrix = new Float64Array(8).fill(1)
  for (let round = 0; round < 3; round++) {
    for (let row = 0; row < 4; row++) tasks.scale(matrix.subarray(row * 2, row * 2 + 2), row)
  }
  assert.equal(await tasks.total(matrix.subarray(4, 6)), 16)
  for (let row = 0; row < 4; row++) await waitOn(matrix.subarray(row * 2, row * 2 + 2))
  assert.deepEqual([...matrix], [0, 0, 1, 1, 8, 8, 27, 27])
  assert.equal(await tasks.total(matrix), 72)
})

test('what overlaps an array that a task writes is refused until that is waited for', async () => {
  const matrix = new Float64Array(8).fill(1)
  const [row, other] = [matrix.subarray(0, 4), matrix.subarray(2, 6)]
  tasks.scale(row, 2)
  for (const value of [matrix, other, [matrix], { deep: other }]) {
    assert.equal(thrown(() => tasks.identity(value)).code, 'MR_ALIAS')
    assert.equal((await rejection(waitOn(value))).code, 'MR_ALIAS')
  }
  assert.equal(thrown(() => tasks.scale(other, 2)).code, 'MR_ALIAS')
  assert.equal(await tasks.total(matrix.subarray(4)), 4)
  await waitOn(row)
  assert.equal(await tasks.total(matrix), 12)
  tasks.scale(other, 2)
  await waitOn(other)
  assert.deepEqual([...matrix], [2, 2, 4, 4, 2, 2, 1, 1])
})

test('the memory of a removed array can be used again, also when a task was writing it', async () => {
  const matrix = new Float64Array(8).fill(1)
  const row = matrix.subarray(0, 4)
  tasks.scale(row, 2)
  await waitOn(row)
  remove(row)
  const again = matrix.subarray(0, 4)
  tasks.scale(again, 2)
  await waitOn(again)
  assert.equal(await tasks.total(matrix.subarray(0, 4)), 16)
  tasks.scale(again, 2)
  remove(again)
  assert.equal(await tasks.total(matrix), 20)
  assert.equal(await tasks.total(matrix.subarray(0, 4)), 16)
  assert.equal(thrown(() => tasks.total(again)).code, 'MR_REMOVED')
})

test('what is inside a removed object can be used again', async () => {
  const inner = { list: [1] }
  const box: Box = { n: 1, inner }
  tasks.bump(box)
  remove(box)
  assert.deepEqual(await tasks.identity(inner), inner)
})

test('equal parts have the right numbers whichever of them was waited for', async () => {
  const matrix = new Float64Array(8).fill(1)
  const [one, two, three] = [matrix.subarray(0, 4), matrix.subarray(0, 4), matrix.subarray(0, 4)]
  tasks.scale(one, 2)
  tasks.scale(two, 2)
  await waitOn(two)
  assert.equal(await tasks.total(one), 16)
  tasks.scale(three, 2)
  assert.equal(await tasks.total(one), 32)
  tasks.scale(one, 2)
  await waitOn(two)
  assert.deepEqual([...three], [16, 16, 16, 16])
  assert.equal(await tasks.total(three), 64)
})

test('an array without elements overlaps nothing', async () => {
  const matrix = new Float64Array(8).fill(1)
  tasks.scale(matrix, 2)
  assert.equal(await tasks.total(matrix.subarray(4, 4)), 0)
  await waitOn(matrix)
})

test('arrays in one object that overlap are all being written', async () => {
  const matrix = new Float64Array(8).fill(1)
  const box: Box = { n: 1, self: [matrix, matrix.subarray(0, 2)] }
  tasks.bump(box)
  for (const from of [0, 4]) {
    assert.equal(thrown(() => tasks.total(matrix.subarray(from))).code, 'MR_ALIAS')
  }
  await waitOn(box)
  assert.equal(await tasks.total(matrix.subarray(4)), 4)
})

test('parts of what a future gave are refused while it is written again', async () => {
  const future = tasks.identity(new Float64Array(8).fill(1)) as Future<Float64Array>
  const matrix = await waitOn(future)
  tasks.scale(future, 2)
  assert.equal(thrown(() => tasks.total(matrix.subarray(0, 4))).code, 'MR_ALIAS')
  await waitOn(future)
  assert.equal(await tasks.total(matrix.subarray(0, 4)), 8)
})

test('a future whose memory is written as another array has the new numbers, or is refused', async () => {
  const future = tasks.identity(new Float64Array(8).fill(1)) as Future<Float64Array>
  const matrix = await waitOn(future)
  for (const part of [matrix.subarray(0), matrix.subarray(0, 4)]) {
    tasks.scale(part, 2)
    assert.equal(thrown(() => tasks.total(future)).code, 'MR_ALIAS')
    assert.equal(thrown(() => tasks.scale(future, 2)).code, 'MR_ALIAS')
    await waitOn(part)
  }
  assert.equal(await tasks.total(future), 24)
})

test('an object that is inside two others is refused while one of them is written', async () => {
  const inner = { list: [1] }
  const one: Box = { n: 1, inner }
  const two: Box = { n: 2, inner }
  tasks.bump(one)
  assert.equal(thrown(() => tasks.bump(two)).code, 'MR_ALIAS')
  await waitOn(one)
  tasks.bump(two)
  await waitOn(two)
  assert(one.inner === inner && two.inner === inner)
})

test('an object with a getter, or with something fixed, is brought up to date', async () => {
  const box = Object.defineProperty({ n: 1, inner: { list: [] } } as Box, 'self', {
    value: 5,
    enumerable: true,
  })
  const computed = Object.defineProperty({ n: 1 } as Box, 'self', {
    get: () => computed.n * 2,
    enumerable: true,
  })
  tasks.bump(box)
  tasks.bump(computed)
  await waitOn([box, computed])
  assert.deepEqual([box.n, computed.n, computed.self], [2, 2, 4])
})

test('a task sees the variables that the program has set before its call', async () => {
  await waitOn([1, 2, 3, 4].map(n => tasks.add(n, n)))
  for (const value of ['one', 'two']) {
    process.env['MILLRACE_TEST_VARIABLE'] = value
    const seen = await waitOn([1, 2, 3, 4].map(() => tasks.variable('MILLRACE_TEST_VARIABLE')))
    assert.deepEqual(seen, [value, value, value, value])
  }
  delete process.env['MILLRACE_TEST_VARIABLE']
  assert.equal(await tasks.variable('MILLRACE_TEST_VARIABLE'), undefined)
})

test('a shared array in an instance that a task writes is not used beside it', async () => {
  const [gate, other] = [newGate(), newGate()]
  await tasks.add(1, 1)
  const grid = new tasks.Grid(shared(Int32Array, 4))
  tasks.advance(grid, gate)
  const early = tasks.firstAfter(grid.cells, null)
  open(gate)
  assert.equal(await early, 1)
  await waitOn(grid)
  assert.deepEqual([...grid.cells, grid.rounds], [1, 1, 1, 1, 1])
  const first = tasks.firstAfter(grid.cells, other)
  assert.equal(thrown(() => tasks.advance(grid, gate)).code, 'MR_ALIAS')
  open(other)
  assert.equal(await first, 1)
  tasks.advance(grid, gate)
  await waitOn(grid)
  assert.equal(grid.cells[0], 2)
})
