import assert from 'node:assert/strict'
import test from 'node:test'
import { Decoder } from '../../src/model/encoding/decode.ts'
import { Encoder } from '../../src/model/encoding/encode.ts'
import { extended, isMore } from '../../src/model/encoding/grown-list.ts'
import type { GrownList } from '../../src/model/encoding/grown-list.ts'
import { Stored } from '../../src/model/encoding/stored.ts'
import { TAG } from '../../src/model/encoding/tags.ts'
import { addedTo, widthOf } from '../../src/node/threads/flat-lists.ts'
import { KeptLists, keepAdded } from '../../src/node/threads/kept-lists.ts'
import { SentLists } from '../../src/node/threads/sent-lists.ts'
import type { SentList } from '../../src/node/threads/sent-lists.ts'

const hooks = { classes: null, blob: (view: ArrayBufferView) => ({ buffer: view.buffer, offset: 0 }) }
const noHooks = { findClass: () => null, slot: () => undefined }

function stored(value: unknown): Stored {
  const encoder = new Encoder()
  encoder.value(value, hooks)
  return new Stored(encoder.copy(), [])
}

/** What a thread says when a task has added to a list of `count`. */
function more(count: number, tag: number, ...added: unknown[]): Stored {
  const encoder = new Encoder()
  encoder.byte(TAG.more)
  encoder.varint(count)
  encoder.varint(added.length / widthOf(tag))
  for (const one of added) encoder.value(one, hooks)
  return new Stored(encoder.copy(), [])
}

const read = (kept: Stored): unknown => new Decoder(kept.bytes, noHooks).value()

test('a list that was extended is encoded as any other', () => {
  const start = Array.from({ length: 126 }, (_, i) => i)
  let list: Stored = stored(start)
  // The number of elements takes another byte on the way.
  for (let i = 126; i < 140; i++) {
    assert.ok(isMore(more(i, TAG.array, `${i}`)) && !isMore(list))
    list = extended(list, more(i, TAG.array, `${i}`))
    start.push(`${i}` as unknown as number)
    assert.deepEqual(list.bytes, stored(start).bytes)
  }
})

test('two tasks that extend the same version have a list each', () => {
  const base = extended(stored([1, 2]), more(2, TAG.array, 3))
  const one = extended(base, more(3, TAG.array, 'one'))
  const other = extended(base, more(3, TAG.array, 'other', 'more'))
  const after = extended(one, more(4, TAG.array, 'after'))
  assert.deepEqual([base, one, other, after].map(read), [
    [1, 2, 3],
    [1, 2, 3, 'one'],
    [1, 2, 3, 'other', 'more'],
    [1, 2, 3, 'one', 'after'],
  ])
  assert.throws(() => extended(base, more(2, TAG.array, 'late')), { code: 'MR_INTERNAL' })
})

/** A coordinator with one thread; records are read when the test says so. */
class Pair {
  readonly forgotten: number[] = []
  readonly sent = new SentLists((_, number) => {
    this.forgotten.push(number)
    this.kept.forget(number)
  })
  readonly kept = new KeptLists()

  constructor() {
    this.sent.reset(0)
  }

  send(list: Stored): { record: Uint8Array; lists: SentList[] } {
    const encoder = new Encoder()
    const lists = [this.sent.write(encoder, list, 0, 0)]
    this.sent.sent(lists)
    return { record: encoder.copy(), lists }
  }

  take(record: Uint8Array): unknown {
    return this.kept.read(new Decoder(record, noHooks)).value
  }

  end(lists: SentList[], isWell = true): void {
    if (isWell) this.sent.arrived(lists)
    this.sent.left(lists, 0)
  }

  run(list: Stored): { bytes: number; value: unknown } {
    const { record, lists } = this.send(list)
    const value = this.take(record)
    this.end(lists)
    return { bytes: record.length, value }
  }
}

const long = Array.from({ length: 2000 }, (_, i) => i)
const grown = (...added: unknown[]): GrownList =>
  extended(stored(long), more(long.length, TAG.array, ...added))

test('a thread is sent what it does not have', () => {
  const pair = new Pair()
  const first = grown('a')
  const second = extended(first, more(2001, TAG.array, 'b'))
  const third = extended(second, more(2002, TAG.array, 'c'))
  assert.ok(pair.run(first).bytes > 2000)
  const { bytes, value } = pair.run(third)
  assert.deepEqual([bytes < 20, value], [true, [...long, 'a', 'b', 'c']])
  // An older version, and one of another log that begins alike.
  assert.deepEqual(pair.run(second).value, [...long, 'a', 'b'])
  assert.deepEqual(pair.run(extended(first, more(2001, TAG.array, 'x'))).value, [...long, 'a', 'x'])
})

/** What a thread sends of a value that a task was given, and has changed. */
function given(base: Stored, change: (value: never) => void): Stored {
  const {
    value,
    graph,
    base: as,
  } = new KeptLists().read(new Decoder(Uint8Array.from([0, 0, ...base.bytes]), noHooks))
  change(value as never)
  const added = as && 'elements' in as && graph ? addedTo(value, as, graph) : null
  if (added && as) return more(as.count, as.tag, ...added)
  const encoder = new Encoder()
  encoder.whole(value, hooks, graph)
  if (as && 'body' in as) keepAdded(encoder, 0, as)
  return new Stored(encoder.copy(), [])
}

const shared = { name: 'shared' }
const objects = Array.from({ length: 300 }, (_, id) => ({ id, name: `n${id}`, shared }))
type Objects = typeof objects
const GROWING: [string, unknown, (value: never) => void, (value: never) => void][] = [
  [
    'a list of objects',
    objects,
    (list: Objects) => list.push({ id: 1, name: 'new', shared: list[0]?.shared ?? shared }),
    (list: Objects) => list.reverse(),
  ],
  [
    'a map',
    new Map(objects.map(one => [one.id, one])),
    (map: Map<number, object>) => map.set(-map.size, map.get(3) ?? shared),
    (map: Map<number, object>) => map.set(5, map.get(3) ?? shared),
  ],
  [
    'a list of flat objects',
    objects.map(({ id, name }) => ({ id, name })),
    (list: object[]) => list.push({ id: 1, name: 'new' }),
    (list: object[]) => Object.assign(list[7] ?? {}, { id: 1 }),
  ],
  [
    'a flat map',
    new Map(objects.map(({ id, name }) => [id, { name }])),
    (map: Map<number, object>) => map.set(map.size, { name: 'new' }),
    (map: Map<number, object>) => map.set(3, { name: 'n3' }),
  ],
  [
    'a flat set',
    new Set(long),
    (set: Set<unknown>) => set.add('new').add(set.size),
    (set: Set<unknown>) => set.delete(3) && set.add(3),
  ],
  [
    'a set',
    new Set([...long, ...objects]),
    (set: Set<unknown>) => set.add(`new ${set.size}`),
    (set: Set<unknown>) => set.delete(3),
  ],
]
for (const [what, value, extend, change] of GROWING) {
  test(`of ${what} only what was added goes back, and to a thread that has the rest`, () => {
    const base = stored(value)
    const added = given(base, extend)
    assert.ok(isMore(added) && added.bytes.length < 40, String(added.bytes.length))
    const pair = new Pair()
    const one = extended(base, added)
    assert.ok(pair.run(one).bytes > 2000)
    const two = extended(one, given(one, extend))
    const { bytes, value: got } = pair.run(two)
    assert.ok(bytes < 60, String(bytes))
    assert.deepEqual(got, read(two))
    assert.deepEqual(pair.run(one).value, read(one))
    assert.ok(!isMore(given(base, change)))
  })
}

const SAME: [string, (list: Objects) => unknown][] = [
  ['put in another order', list => list.reverse()],
  ['with a property in another place', list => Object.assign(list, { 5: { name: 'n5', id: 5 } })],
  ['with a symbol', list => Object.assign(list[9] ?? {}, { [Symbol('x')]: 1 })],
  ['with an object twice', list => list.push(list[4] as Objects[number])],
  [
    'with a new object twice',
    list => ((one: Objects[number]) => list.push(one, one))({ ...list[4] } as Objects[number]),
  ],
  ['with a hole', list => (list.length += 1)],
  ['with a name', list => Object.assign(list, { name: 'list' })],
  ['with an object that holds another', list => list.push({ inner: {} } as unknown as Objects[number])],
  ['shorter', list => list.pop()],
]
for (const [what, change] of SAME) {
  test(`a list of flat objects ${what} goes back as a whole`, () => {
    const { value, graph, base } = new KeptLists().read(
      new Decoder(
        Uint8Array.from([0, 0, ...stored(objects.map(({ id, name }) => ({ id, name }))).bytes]),
        noHooks,
      ),
    )
    assert.ok(base && 'elements' in base && graph)
    assert.deepEqual(addedTo(value, base, graph), [])
    change(value as Objects)
    assert.equal(addedTo(value, base, graph), null)
  })
}

test('an object of a list that is replaced by an equal one is another one', () => {
  const replace = (list: Objects): void => {
    list[3] = { ...list[3] } as Objects[number]
  }
  assert.ok(!isMore(given(stored(objects), replace)))
})

test('records of one list may be read in any order, taken back, and fail', () => {
  const pair = new Pair()
  const first = grown('a')
  const second = extended(first, more(2001, TAG.array, 'b'))
  const [late, early, back] = [pair.send(first), pair.send(second), pair.send(second)]
  pair.end(back.lists, false)
  assert.deepEqual(pair.take(early.record), [...long, 'a', 'b'])
  assert.deepEqual(pair.take(late.record), [...long, 'a'])
  pair.end(early.lists)
  pair.end(late.lists)
  assert.ok(pair.run(extended(second, more(2002, TAG.array, 'c'))).bytes < 20)
  assert.deepEqual(pair.forgotten, [])
})

test('what a thread keeps has a bound, and nothing is forgotten that is on its way', () => {
  const pair = new Pair()
  const lists = Array.from({ length: 70 }, (_, i) => grown(i))
  pair.run(lists[0] as Stored)
  const pending = pair.send(lists[0] as Stored)
  for (const list of lists.slice(1)) pair.run(list)
  assert.equal(pair.forgotten.length, 6)
  assert.deepEqual(pair.take(pending.record), [...long, 0])
  // An attempt that failed may not have read it: the thread has nothing to keep.
  const unread = grown('unread')
  pair.end(pair.send(unread).lists, false)
  assert.equal(pair.forgotten.at(-1), unread.log.number)
})
