import assert from 'node:assert/strict'
import { freemem } from 'node:os'
import test from 'node:test'
import fc from 'fast-check'
import { Decoder } from '../../src/model/encoding/decode.ts'
import { BLOB_SIZE, Encoder } from '../../src/model/encoding/encode.ts'
import type { EncodeHooks } from '../../src/model/encoding/encode.ts'
import { TaskError } from '../../src/model/errors.ts'
import type { Graph } from '../../src/model/encoding/identity.ts'
import { bringUpToDate } from '../../src/model/capture/up-to-date.ts'

export class Vector {
  x = 0
  y: unknown = 0
}
class Hidden {
  #secret = 1
  get secret(): number {
    return this.#secret
  }
}
class Derived extends Vector {
  z = 1
}
class OwnMap extends Map {}
class OwnError extends Error {}

const known = new Map<Function, string>([
  [Vector, 'Vector'],
  [Hidden, 'Hidden'],
  [Derived, 'Derived'],
  [OwnMap, 'OwnMap'],
  [OwnError, 'OwnError'],
])
const hooks: EncodeHooks = {
  classes: {
    nameOf: constructor => {
      const name = known.get(constructor)
      return name ? { module: 'here', name } : null
    },
  },
  blob: view => ({ buffer: view.buffer, offset: view.byteOffset }),
}

function findClass(_module: string, name: string): Function | null {
  for (const [type, own] of known) if (own === name) return type
  return null
}

const encoder = new Encoder()
const decodeHooks = { findClass, slot: () => 'slot' }

function roundTrip(value: unknown, with_: EncodeHooks = hooks): unknown {
  encoder.reset()
  encoder.value(value, with_)
  const decoder = new Decoder(encoder.copy(), decodeHooks)
  decoder.beside(encoder.blobs)
  const back = decoder.value()
  assert(decoder.done, 'all bytes are read')
  return back
}

function refusal(value: unknown): string {
  try {
    roundTrip(value)
  } catch (error) {
    assert.equal((error as { code: string }).code, 'MR_NOT_CLONEABLE')
    return (error as { shortMessage: string }).shortMessage
  }
  return 'not refused'
}

// --- what survives ---

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.string({ unit: fc.constantFrom('\ud800', 'a', '\udc00', 'é', '\0'), maxLength: 40 }),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'length', 'then', ''),
)

const leaf = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.constantFrom(
    -0,
    NaN,
    Infinity,
    -Infinity,
    2 ** 31,
    -(2 ** 31),
    2 ** 53,
    2 ** 31 - 1,
    127,
    128,
    16383,
    16384,
  ),
  text,
  fc.boolean(),
  fc.constantFrom(null, undefined),
  fc.bigInt(),
  fc.date({ noInvalidDate: true }),
  fc.constantFrom(/a+b/gi, /[/\\]/u, new RegExp('', 'y')),
  fc.uint8Array(),
  fc.int16Array(),
  fc.float64Array(),
  fc.bigInt64Array(),
  fc.uint8Array().map(bytes => Buffer.from(bytes)),
  fc.uint8Array().map(bytes => bytes.buffer.slice(0)),
  fc.uint8Array().map(bytes => new DataView(bytes.buffer.slice(0))),
  fc.constantFrom(new Float64Array(BLOB_SIZE / 8), new Uint8Array(BLOB_SIZE - 1), new Uint8Array(BLOB_SIZE)),
)

const { tree } = fc.letrec<{ tree: unknown }>(tie => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc.array(tie('tree'), { maxLength: 6 }),
    fc.sparseArray(tie('tree'), { maxNumElements: 4, maxLength: 12 }),
    fc.dictionary(text, tie('tree'), { maxKeys: 6, noNullPrototype: false }),
    fc.array(fc.tuple(tie('tree'), tie('tree')), { maxLength: 4 }).map(entries => new Map(entries)),
    fc.array(tie('tree'), { maxLength: 4 }).map(items => new Set(items)),
    fc.tuple(fc.double(), tie('tree')).map(([x, y]) => Object.assign(new Vector(), { x, y })),
    fc
      .tuple(text, tie('tree'))
      .map(([message, cause]) => new RangeError(message, cause === undefined ? {} : { cause })),
  ),
}))

test('any value comes back as it was', () => {
  fc.assert(
    fc.property(tree, value => {
      assert.deepEqual(roundTrip(value), value)
    }),
    { numRuns: 1500 },
  )
})

test('anything of fast-check comes back as it was', () => {
  const anything = fc.anything({
    withBigInt: true,
    withMap: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
    withNullPrototype: true,
    stringUnit: 'binary',
  })
  fc.assert(
    fc.property(anything, value => {
      assert.deepEqual(roundTrip(value), value)
    }),
    { numRuns: 1000 },
  )
})

test('several values in one buffer do not reach into each other', () => {
  fc.assert(
    fc.property(fc.array(tree, { maxLength: 4 }), values => {
      const one = new Encoder()
      const bases: number[] = []
      for (const value of values) {
        bases.push(one.blobs.length)
        one.value(value, hooks)
      }
      const decoder = new Decoder(one.copy(), { findClass, slot: () => 'slot' })
      for (const [i, value] of values.entries()) {
        decoder.beside(one.blobs, bases[i])
        assert.deepEqual(decoder.value(), value)
      }
    }),
    { numRuns: 300 },
  )
})

test('an array keeps what it has beside its elements', () => {
  const match = /b(?<inner>c)/.exec('abcd')
  assert.deepEqual(roundTrip(match), match)
  const strange = Object.assign([1, 2, 3] as unknown[], {
    '': 1,
    '1e0': 2,
  })
  strange.length = 5
  assert.deepEqual(roundTrip(strange), strange)
  const table = Object.assign(
    Array.from({ length: 20_000 }, (_, i) => i),
    { columns: ['a'] },
  )
  assert.deepEqual(roundTrip(table), table)
  assert.deepEqual(
    roundTrip(Object.assign([] as unknown[], { name: 'empty' })),
    Object.assign([], { name: 'empty' }),
  )
})

test('a date that is none stays so', () => {
  assert(Number.isNaN((roundTrip(new Date(NaN)) as Date).getTime()))
})

test('a text with more bytes than a text may have characters comes back', context => {
  // A container may have less than the machine.
  if (Math.min(freemem(), process.availableMemory()) < 6e9) return context.skip('it takes 2 GB of memory')
  const text = 'é'.repeat(2 ** 28)
  // Comparing as such is quick, showing the difference would not be.
  assert(roundTrip(text) === text)
})

test('cycles and objects that occur twice stay so', () => {
  const a: Record<string, unknown> = { n: 1 }
  a['self'] = a
  a['list'] = [a, new Map([[a, new Set([a])]])]
  const back = roundTrip(a) as typeof a
  assert.equal(back['self'], back)
  const [inList, map] = back['list'] as [unknown, Map<unknown, Set<unknown>>]
  assert.equal(inList, back)
  assert(map.get(back)?.has(back))
  const date = new Date(5)
  const [first, second] = roundTrip([date, date]) as [Date, Date]
  assert.equal(first, second)
  const error = new Error('round', { cause: null })
  error.cause = error
  const again = roundTrip(error) as Error
  assert.equal(again.cause, again)
})

test('random references inside a value are kept', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(9), fc.nat(9), fc.boolean())), links => {
      const nodes = Array.from({ length: 10 }, (_, id) => ({ id, to: [] as unknown[], map: new Map() }))
      for (const [from, to, isMap] of links) {
        if (isMap) nodes[from]?.map.set(nodes[to], to)
        else nodes[from]?.to.push(nodes[to])
      }
      const back = roundTrip(nodes) as typeof nodes
      for (const [from, to, isMap] of links) {
        if (isMap) assert.equal(back[from]?.map.get(back[to]), to)
        else assert(back[from]?.to.includes(back[to]))
      }
    }),
    { numRuns: 300 },
  )
})

test('a key called __proto__ is a key', () => {
  const value = JSON.parse('{"__proto__": {"polluted": true}, "a": 1}') as object
  const back = roundTrip(value) as object
  assert.deepEqual(Object.keys(back), ['__proto__', 'a'])
  assert.equal(Object.getPrototypeOf(back), Object.prototype)
  assert.equal((back as { polluted?: boolean }).polluted, undefined)
})

test('errors keep name, message, stack, cause and what else they carry', () => {
  const error = Object.assign(new TypeError('wrong', { cause: new Error('deeper') }), {
    code: 'E_X',
    list: [1],
  })
  error.name = 'OddName'
  const back = roundTrip(error) as typeof error
  assert(back instanceof TypeError)
  assert.deepEqual(
    [back.name, back.message, back.stack, back.code, back.list],
    [error.name, error.message, error.stack, 'E_X', [1]],
  )
  assert.equal((back.cause as Error).message, 'deeper')
  const many = roundTrip(new AggregateError([new Error('a'), 5], 'both')) as AggregateError
  assert.deepEqual([many.message, (many.errors[0] as Error).message, many.errors[1]], ['both', 'a', 5])
})

test('errors of known classes keep them, and others are what they extend', () => {
  const back = roundTrip(new OwnError('own', { cause: new TaskError('MR_TIMEOUT', 'a#1', 2, 5) })) as OwnError
  assert(back instanceof OwnError)
  assert(back.cause instanceof TaskError)
  assert.deepEqual([back.message, back.cause.attempt, back.cause.timedOut], ['own', 2, true])
  const thrown = roundTrip(new OwnError('x'), { ...hooks, classes: null, lenient: true })
  assert(thrown instanceof Error && !(thrown instanceof OwnError))
})

test('classes keep their prototype, also derived ones', () => {
  const value = Object.assign(new Derived(), { x: 1, y: new Vector() })
  const back = roundTrip(value) as Derived
  assert(back instanceof Derived)
  assert(back.y instanceof Vector)
  assert.deepEqual(back, value)
})

// --- what is refused ---

function detached(): Uint8Array {
  const array = new Uint8Array(8)
  structuredClone(array.buffer, { transfer: [array.buffer] })
  return array
}

test('what cannot be kept is refused with the path to it', () => {
  class Unknown {}
  const cases: [unknown, RegExp][] = [
    [() => 1, /^the value is a function$/],
    [{ a: [0, { b: function named() {} }] }, /^the value at \.a\[1\]\.b is a function \(named\)$/],
    [[[Symbol('x')]], /^the value at \[0\]\[0\] is a symbol$/],
    [{ [Symbol('key')]: 1 }, /symbol keys/],
    [Object.assign([1], { [Symbol('key')]: 1 }), /an array with symbol keys/],
    [Object.assign(Array.from({ length: 100 }), { [Symbol('key')]: 1 }), /an array with symbol keys/],
    [Object.assign(new Map(), { extra: 1 }), /a Map with properties of its own/],
    [
      Object.defineProperty(new Vector(), 'z', { value: 1 }),
      /Vector with properties that are not enumerable/,
    ],
    [detached(), /whose memory was given away/],
    [new Map([['k', Symbol('x')]]), /\(key k\) is a symbol/],
    [new Set([() => 1]), /\(member\) is a function/],
    [
      { deep: new Unknown() },
      /^the value at \.deep is an instance of Unknown, which no task module exports$/,
    ],
    [new Hidden(), /Hidden, which has private #fields/],
    [new OwnMap(), /OwnMap, which extends a built-in/],
    [new (class Other extends Error {})('x'), /Other, which no task module exports/],
    [Promise.resolve(1), /a promise/],
    [new WeakMap(), /WeakMap/],
    [new (class extends Float64Array {})(2), /subclass of a typed array/],
    [Object.create({ inherited: 1 }), /which no task module exports|unknown/],
    [new Error('x', { cause: () => 1 }), /a function/],
  ]
  for (const [value, message] of cases) assert.match(refusal(value), message)
})

test('after a refusal the encoder works as before, and the path does not leak into the next', () => {
  assert.match(refusal({ a: { b: () => 1 } }), /\.a\.b is/)
  assert.match(refusal([() => 1]), /^the value at \[0\] is/)
  assert.deepEqual(roundTrip({ a: [1, 2] }), { a: [1, 2] })
})

test('the path to the second of two neighbours is its own', () => {
  assert.match(refusal([[1, 2, 3], { a: 1 }, () => 1]), /^the value at \[2\] is/)
  assert.match(refusal({ first: { deep: [1] }, second: Symbol('s') }), /^the value at \.second is/)
})

test('thrown things always get through, as text where they must', () => {
  const lenient = { ...hooks, classes: null, lenient: true }
  const odd = Object.assign(new OwnError('odd'), { socket: () => 1, sym: Symbol('s'), vector: new Vector() })
  const back = roundTrip(odd, lenient) as Error & { socket: string; sym: string }
  assert.equal(back.message, 'odd')
  assert.equal(typeof back.socket, 'string')
  assert.equal(back.sym, 'Symbol(s)')
  assert.equal(typeof roundTrip(() => 1, lenient), 'string')
})

// --- large arrays ---

test('large arrays go beside the bytes, once each, and small ones inside', () => {
  const large = new Float64Array(BLOB_SIZE / 4).fill(3)
  encoder.reset()
  encoder.value([large, large, large.subarray(1), new Uint8Array(10)], hooks)
  assert.deepEqual(encoder.blobs, [large.buffer])
  assert(encoder.length < 200)
  const back = roundTrip([large, large.subarray(8)]) as Float64Array[]
  assert.equal(back[0]?.buffer, large.buffer)
  assert.equal(back[1]?.length, large.length - 8)
})

test('shared memory is never copied, however small', () => {
  const small = new Int32Array(new SharedArrayBuffer(16))
  const back = roundTrip({ small }) as { small: Int32Array }
  assert.equal(back.small.buffer, small.buffer)
})

// --- in place ---

const plain = fc.dictionary(text, tree, { noNullPrototype: true })

/** As a task does: the value comes, is changed, and goes back with what is known of its objects. */
function afterTask<T extends object>(value: T, change: (copy: T) => void): { own: object[]; graph: Graph } {
  encoder.reset()
  const own = encoder.whole(value, hooks, null)
  const task = new Decoder(encoder.copy(), decodeHooks)
  task.beside(encoder.blobs)
  const copy = task.value() as T
  change(copy)
  encoder.reset()
  encoder.whole(copy, hooks, task.graph)
  const program = new Decoder(encoder.copy(), decodeHooks)
  program.beside(encoder.blobs)
  program.value()
  return { own, graph: program.graph }
}

function change<T extends object>(value: T, by: (copy: T) => void): void {
  const { own, graph } = afterTask(value, by)
  bringUpToDate(own, graph)
}

test('members of sets and keys of maps stay the objects that they were', () => {
  const key = { k: 1 }
  const target = { set: new Set([key]), map: new Map([[key, [1]]]), key }
  change(target, latest => {
    latest.key.k = 2
    latest.map.get(latest.key)?.push(2)
  })
  assert(target.key === key && target.set.has(key))
  assert.deepEqual([key.k, target.map.get(key)], [2, [1, 2]])
  change(target, latest => {
    latest.set.clear()
    latest.set.add({ k: 3 })
    latest.set.add(latest.key)
  })
  assert.deepEqual(
    [...target.set].map(one => one.k),
    [3, 2],
  )
  assert(target.set.has(key))
})

test('bringing an object up to date makes it equal, keys in order', () => {
  fc.assert(
    fc.property(plain, plain, (target, latest) => {
      change(target, copy => {
        for (const name of Object.keys(copy)) delete copy[name]
        Object.defineProperties(copy, Object.getOwnPropertyDescriptors(latest))
      })
      assert.deepEqual({ ...target }, { ...latest })
      assert.deepEqual(Object.keys(target), Object.keys(latest))
    }),
    { numRuns: 500 },
  )
})

test('objects that a task took out of a value have what it did to them', () => {
  const [a, b] = [{ n: 1 }, { n: 2 }]
  const list = [a, b]
  change(list, copy => {
    const gone = copy.shift()
    if (gone) gone.n = 10
  })
  assert.deepEqual([a.n, list.length, list[0] === b], [10, 1, true])
})

test('what a second task moves, or made anew, is known by what the first left', () => {
  const [a, b] = [{ n: 1 }, { n: 2 }]
  const list: { n: number; to?: object }[] = [a, b]
  encoder.reset()
  const own = encoder.whole(list, hooks, null)
  const changes: ((copy: typeof list) => void)[] = [
    copy => copy.reverse(),
    copy => copy.splice(1, 0, { n: 3 }),
    copy => {
      copy.reverse()
      for (const one of copy) one.to = copy
    },
  ]
  let graph: Graph = { objects: [], origins: null }
  for (const [i, by] of [...changes, () => undefined].entries()) {
    const decoder = new Decoder(encoder.copy(), decodeHooks)
    const copy = decoder.value() as typeof list
    graph = decoder.graph
    by(copy)
    if (i === changes.length) break
    encoder.reset()
    encoder.whole(copy, hooks, graph)
  }
  bringUpToDate(own, graph)
  assert.deepEqual(
    list.map(one => one.n),
    [1, 3, 2],
  )
  assert(list[0] === a && list[2] === b && list.every(one => one.to === list))
})
