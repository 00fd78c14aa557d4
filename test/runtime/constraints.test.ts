import assert from 'node:assert/strict'
import test from 'node:test'
import { MillraceError, command, configure, implement, shared, task, waitOn } from 'millrace'
import * as commands from '../fixtures/commands.ts'
import { thrown, until } from './embedded.ts'

configure({ tags: ['gpu'], memory: '1GB' })
process.env['TEST_CPUS'] = '2'

const many = (n: number, call: (counts: Int32Array) => unknown): Promise<number> => {
  const counts = shared(Int32Array, 2)
  return waitOn(Array.from({ length: n }, () => call(counts))).then(() => counts[1] as number)
}

test('as many tasks run at once as there are CPUs, and no more', async () => {
  const meeting = shared(Int32Array, 1)
  const met = [commands.meets(meeting, 2), commands.meets(meeting, 2)]
  assert.deepEqual(await waitOn(met), [true, true])
  assert((await many(12, counts => commands.one(counts))) <= 2)
})

test('a task with two CPUs runs alone on two', async () => {
  assert.equal(await many(4, counts => commands.wide(counts)), 1)
})

test('memory that is claimed is not claimed twice', async () => {
  assert.equal(await many(4, counts => commands.hungry(counts)), 1)
})

test('constraints may be functions of the arguments, or from the environment', async () => {
  assert.equal(await many(4, counts => commands.byFunction(counts, 2)), 1)
  assert((await many(8, counts => commands.byFunction(counts, 1))) <= 2)
  assert.equal(await many(4, counts => commands.byEnvironment(counts)), 1)
  assert.equal(thrown(() => commands.byMissing()).code, 'MR_ENV')
})

test('what no machine has is refused with both numbers', () => {
  const cpus = thrown(() => commands.greedy())
  assert.equal(cpus.code, 'MR_CONSTRAINT')
  assert.match(cpus.message, /task greedy asks for 64 CPUs, but the largest node has 2/)
  const memory = thrown(() => commands.glutton())
  assert.equal(memory.code, 'MR_CONSTRAINT')
  assert.match(memory.message, /4000000000000 bytes of memory, but the largest node has 1000000000/)
  assert.equal(thrown(() => commands.strange()).code, 'MR_CONSTRAINT')
  assert.match(thrown(() => commands.strange()).message, /quantum/)
})

test('tags that the machine has are no obstacle', async () => {
  assert.equal(await commands.tagged(), 'on the gpu')
})

test('higher priority runs first among the ready', async () => {
  const gate = shared(Int32Array, 2)
  const order = shared(Int32Array, 8)
  const holding = commands.hold(gate)
  await until(() => Atomics.load(gate, 0) === 1, 'the holding task')
  for (const n of [1, 3, 2, 5, 4]) commands.ordered(n, order)
  Atomics.store(gate, 1, 1)
  Atomics.notify(gate, 1)
  await waitOn(order)
  await holding
  assert.deepEqual([...order].slice(1, 6), [5, 4, 3, 2, 1])
})

test('each version of a task is tried, then the fastest that fits is used', async () => {
  const tried: string[] = []
  for (let i = 0; i < 12; i++) tried.push(await commands.versions(i))
  assert(tried.some(text => text.startsWith('slow')))
  assert(tried.some(text => text.startsWith('fast')))
  assert(!tried.some(text => text.startsWith('never')))
  assert(
    tried.slice(4).every(text => text.startsWith('fast')),
    tried.join(),
  )
})

test('wrong options are refused where the task is defined, with a way out', () => {
  const cases: [() => unknown, string, RegExp][] = [
    [() => task({ cpu: 1 } as never, () => 1), 'MR_OPTION', /did you mean 'cpus'/],
    [() => task({ cpus: 0 }, () => 1), 'MR_UNIT', /cpus is '0'/],
    [() => task({ cpus: 1.5 }, () => 1), 'MR_UNIT', /whole number/],
    [() => task({ memory: '5 bananas' }, () => 1), 'MR_UNIT', /5 bananas/],
    [() => task({ timeout: 'soon' }, () => 1), 'MR_UNIT', /soon/],
    [() => task({ timeout: -1 }, () => 1), 'MR_UNIT', /-1/],
    [() => task({ name: 5 } as never, () => 1), 'MR_OPTION', /name cannot be 5/],
    [() => task({ priority: 'high' } as never, () => 1), 'MR_OPTION', /priority cannot be "high"/],
    [() => command({ cwd: 5 } as never, () => ['true']), 'MR_OPTION', /cwd cannot be 5/],
    [() => command({ env: null } as never, () => ['true']), 'MR_OPTION', /env cannot be null/],
    [() => command({ exitCodes: { 3: 'ok' } } as never, () => ['true']), 'MR_OPTION', /exitCodes cannot be/],
    [() => task({ onFailure: 'ignroe' } as never, () => 1), 'MR_OPTION', /did you mean 'ignore'/],
    [() => task({ retries: -1 }, () => 1), 'MR_OPTION', /retries/],
    [
      () => task({ params: ['FILE_INN'] } as never, (_a: string) => 1),
      'MR_DIRECTION',
      /did you mean FILE_IN/,
    ],
    [
      () => task({ params: ['IN'] } as never, (_a: string, _b: string) => 1),
      'MR_DIRECTION',
      /2 parameters and 1/,
    ],
    [() => task({ returns: 1.5 }, () => [1] as [number]), 'MR_OPTION', /returns/],
    [() => task({}, 5 as never), 'MR_OPTION', /not a function/],
    [() => task({ returns: 2 }, function* () {} as never), 'MR_OPTION', /generator/],
    [
      () => command({ params: ['IN'], stdin: 0 }, () => ['cat']),
      'MR_DIRECTION',
      /stdin is parameter 0, which is IN/,
    ],
    [() => command({ stdout: 3 }, () => ['cat']), 'MR_DIRECTION', /stdout is parameter 3, which is nothing/],
    [() => implement((() => 1) as never, {}, () => 1), 'MR_OPTION', /implement/],
    [() => configure({ cpu: 1 } as never), 'MR_OPTION', /did you mean 'cpus'/],
  ]
  for (const [define, code, message] of cases) {
    const error = thrown(define)
    assert(error instanceof MillraceError)
    assert.equal(error.code, code, error.message)
    assert.match(error.message, message)
    assert(error.hint.length > 0)
  }
})

test('shared() refuses a length that is none', () => {
  assert.equal(thrown(() => shared(Float64Array, -1)).code, 'MR_OPTION')
  assert.equal(thrown(() => shared(Float64Array, 1.5)).code, 'MR_OPTION')
  assert.equal(shared(Float64Array, 0).length, 0)
})

test('a constraint of a further version that is a function of the arguments is honoured or refused', async () => {
  const base = commands.one
  const outcome = await Promise.resolve()
    .then(() => implement(base, { cpus: (counts: Int32Array) => counts.length }, () => undefined))
    .then(() => many(2, counts => commands.one(counts)))
    .then(
      () => 'fine',
      (error: { code?: string }) => error.code ?? String(error),
    )
  assert(['fine', 'MR_OPTION'].includes(outcome), outcome)
})
