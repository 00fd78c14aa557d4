/** Checked by `tsc -p tsconfig.test.json`, never run: what must compile does, what must not does not. */
import {
  COMMUTATIVE,
  CONCURRENT,
  DIR_OUT,
  FILE_IN,
  FILE_OUT,
  IN,
  INOUT,
  OUT,
  auto,
  command,
  group,
  implement,
  openFile,
  ready,
  shared,
  task,
  waitOn,
} from 'millrace'
import type { Future, Stream } from 'millrace'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
function same<A, B>(_equal: Equal<A, B>): void {}

// --- directions that fit ---

export const multiply = task(
  { name: 'multiply', params: [IN, IN, INOUT], cpus: 2, priority: 1 },
  (_a: Float64Array, _b: Float64Array, _c: Float64Array) => undefined,
)
export const copy = task({ params: [FILE_IN, FILE_OUT] }, (_from: string, _to: string) => 1)
export const unpack = task({ params: [FILE_IN, DIR_OUT] }, async (_from: string, _to: string) => 'done')
export const adds = task(
  { params: [CONCURRENT, COMMUTATIVE, OUT] },
  (_a: Int32Array, _b: { n: number }, _c: Float64Array) => 1,
)
export const plain = task({}, (n: number, text: string) => `${n}${text}`)
export const byFunction = task(
  {
    cpus: (n: number) => n,
    memory: n => `${n}MB`,
    tags: () => ['gpu'],
    priority: (_n: number, big: boolean) => (big ? 1 : 0),
  },
  (_n: number, _big: boolean) => 1,
)

// --- directions that do not fit ---

// @ts-expect-error an object is no memory that tasks can write at the same time
task({ params: [CONCURRENT] }, (_box: { n: number }) => 1)
// @ts-expect-error nor is a list of numbers
task({ params: [CONCURRENT] }, (_list: number[]) => 1)
task({ params: [CONCURRENT] }, (_rows: Int32Array[]) => 1)
task({ params: [CONCURRENT] }, (_memory: SharedArrayBuffer) => 1)
// @ts-expect-error what is readonly cannot be written
task({ params: [INOUT] }, (_list: readonly number[]) => 1)
// @ts-expect-error nor filled
task({ params: [OUT] }, (_list: readonly { n: number }[]) => 1)
// @ts-expect-error nor maps that are readonly
task({ params: [INOUT] }, (_map: ReadonlyMap<string, number>) => 1)
// @ts-expect-error nor tuples
task({ params: [COMMUTATIVE] }, (_pair: readonly [number, number]) => 1)
task({ params: [INOUT, INOUT] }, (_map: Map<string, number>, _set: Set<{ n: number }>) => 1)

// --- what is inside maps and sets ---

same<Awaited<ReturnType<typeof waitOn<Map<string, Future<number>>>>>, Map<string, number>>(true)
same<Awaited<ReturnType<typeof waitOn<Set<Future<number>>>>>, Set<number>>(true)

// --- futures of unions ---

export const isLarge = task({}, (n: number): boolean => n > 1)
export const either = task({}, (n: number): string | number => (n > 1 ? n : 'few'))
export const takes = task({}, (_yes: boolean, _value: string | number | null, _maybe?: boolean) => 1)
takes(isLarge(1), either(2))
takes(true, null, isLarge(3))
// @ts-expect-error a string is no boolean
takes(either(1), 1)

// --- I/O ---

export const checkpoint = task(
  { name: 'checkpoint', io: true, params: [IN, FILE_OUT], bandwidth: 'auto', size: '290MB' },
  async (_block: Float64Array, _path: string) => undefined,
)
export const bounded = task(
  { io: true, params: [FILE_OUT, IN], bandwidth: auto(2, '64MB/s', 2), size: (_path, n) => n },
  async (_path: string, _n: number) => undefined,
)
export const byArgument = task(
  { io: true, bandwidth: (fast: boolean) => (fast ? 'adaptive' : 20), direction: 'read', storage: 'ssd' },
  async (_fast: boolean) => 1,
)
export const copyOut = command(
  { name: 'cp', io: true, params: [FILE_IN, FILE_OUT], bandwidth: '$RATE' },
  (a, b) => ['cp', a, b],
)
// @ts-expect-error io is true or false
task({ io: 'yes' }, (_n: number) => 1)
// @ts-expect-error a bandwidth is not a list
task({ io: true, bandwidth: [1, 2] }, (_n: number) => 1)
// @ts-expect-error there are two directions
task({ io: true, direction: 'both' }, (_n: number) => 1)

// --- directions that do not ---

// @ts-expect-error a number is no path
task({ params: [FILE_IN] }, (_n: number) => 1)
// @ts-expect-error a number cannot be written
task({ params: [INOUT] }, (_n: number) => 1)
// @ts-expect-error a string cannot be written
task({ params: [OUT] }, (_s: string) => 1)
// @ts-expect-error an array is no path
task({ params: [DIR_OUT] }, (_a: Float64Array) => 1)
// @ts-expect-error too few directions
task({ params: [IN] }, (_a: number, _b: number) => 1)
// @ts-expect-error too many directions
task({ params: [IN, IN] }, (_a: number) => 1)
// @ts-expect-error no such direction
task({ params: ['INN'] }, (_a: number) => 1)
// @ts-expect-error no such option
task({ cpu: 1 }, (_a: number) => 1)
// @ts-expect-error no such form
task({ onFailure: 'explode' }, (_a: number) => 1)

// --- arguments ---

const a = new Float64Array(1)
const future = plain(1, 'x')
same<typeof future, Future<string>>(true)
multiply(a, a, a)
multiply(shared(Float64Array, 4), a, a)
plain(1, future)
// @ts-expect-error wrong type
plain('1', 'x')
// @ts-expect-error wrong future
plain(future, 'x')
// @ts-expect-error too few
plain(1)
// @ts-expect-error too many
plain(1, 'x', 2)

export const sum = task({}, (list: readonly number[]) => list.length)
const one = sum([1, 2])
sum([one, 2, one])
// @ts-expect-error a future of text among numbers
sum([future])
export const deep = task({}, (holder: { a: number; b: { c: string }[] }) => holder.a)
deep({ a: one, b: [{ c: future }] })
// @ts-expect-error a number where text is wanted
deep({ a: 1, b: [{ c: one }] })

// --- results ---

same<ReturnType<typeof unpack>, Future<string>>(true)
export const pair = task({ returns: 2 }, (n: number): [number, string] => [n, String(n)])
const [first, second] = pair(1)
same<typeof first, Future<number>>(true)
same<typeof second, Future<string>>(true)
// @ts-expect-error there is no third
export const third = pair(1)[2]
export const later = task({ returns: 2 }, async (n: number): Promise<[number, string]> => [n, ''])
same<ReturnType<typeof later>, [Future<number>, Future<string>]>(true)

export async function waits(): Promise<void> {
  same<Awaited<typeof future>, string>(true)
  const all = await waitOn([one, one])
  same<typeof all, number[]>(true)
  const text = await waitOn(future)
  same<typeof text, string>(true)
  const array = await waitOn(a)
  same<typeof array, typeof a>(true)
  const inGroup = await group('g', async () => 5)
  same<typeof inGroup, number>(true)
  await (await openFile('x')).close()
}

// --- commands ---

export const sort = command({ params: [FILE_IN, FILE_OUT, IN] }, (from, to, key: number) => [
  'sort',
  from,
  to,
  key,
])
same<ReturnType<typeof sort>, Future<number>>(true)
sort('a', 'b', 1)
// @ts-expect-error a path is text
sort(1, 'b', 1)
// @ts-expect-error too few
sort('a')
// @ts-expect-error a word is text or a number
command({ params: [FILE_IN] }, path => [path, { not: 'a word' }])
// @ts-expect-error a path parameter is text
command({ params: [FILE_IN] }, (path: number) => ['cat', path])

// --- further versions ---

implement(plain, { cpus: 1 }, (n: number, text: string) => `${text}${n}`)
implement(plain, {}, () => 'fewer parameters are fine')
// @ts-expect-error wrong parameters
implement(plain, {}, (n: boolean) => String(n))
// @ts-expect-error wrong result
implement(plain, {}, (n: number) => n)

// --- generators and early release ---

export const numbers = task({ buffer: 4, bufferBytes: '1MB' }, function* (n: number) {
  yield n
})
export const texts = task({}, async function* (values: AsyncIterable<number>, _suffix: string) {
  for await (const value of values) yield `${value}`
})
export const joined = task({}, async (_values: AsyncIterable<string>) => 'all')
export const yieldsFutures = task({}, function* () {
  yield plain(1, 'a')
})
same<ReturnType<typeof numbers>, Stream<number>>(true)
same<ReturnType<typeof texts>, Stream<string>>(true)
same<ReturnType<typeof yieldsFutures>, Stream<string>>(true)
same<ReturnType<typeof joined>, Future<string>>(true)
void joined(texts(numbers(3), 'x'))
// @ts-expect-error a stream of numbers where one of texts is taken
void joined(numbers(3))
// @ts-expect-error an array is no stream
void joined(['a'])
implement(numbers, {}, function* (n) {
  yield n + 1
})
// @ts-expect-error another version must yield the same type
implement(numbers, {}, function* () {
  yield 'text'
})
export const halves = task({ returns: 2 }, (n: number) => [ready(0, n), String(n)] as const)
same<ReturnType<typeof halves>, [Future<number>, Future<string>]>(true)
