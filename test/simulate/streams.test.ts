import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { setHost } from '../../src/model/client.ts'
import { task } from '../../src/model/task.ts'
import { SimulatedHost, programWorkload } from '../../src/simulate/program/program.ts'
import { simulate } from '../../src/simulate/simulate.ts'

/** Seconds that a program takes on so many CPUs. */
async function seconds(cpus: number, body: () => Promise<void>): Promise<number> {
  const host = new SimulatedHost()
  setHost(host)
  const node = { name: 'n', cpus, memory: 1e12, tags: [] }
  const { tasksEnded } = await simulate(programWorkload('program', body, host), {
    platform: { nodes: [node] },
  })
  return tasksEnded
}

const generator = (name: string, cost: object) =>
  task({ name, cost }, async function* (): AsyncGenerator<number> {
    await Promise.reject(new Error('never run'))
    yield 0
  })
const use = task({ name: 'use', cost: { compute: 4 } }, (_value: number): number => 0)
const together = (made: { then: unknown }): number => made as unknown as number

test('values of a simulated generator should come after their parts of its computing, with what was given', async () => {
  const made = generator('made', { compute: 10, ready: [0.1, 0.5, 0.5], returns: ['a', 'b', 'c'] })
  const seen: unknown[] = []
  const took = await seconds(4, async () => {
    for await (const value of made()) {
      seen.push(await (value as unknown))
      use(value)
    }
  })
  assert.deepEqual(seen, ['a', 'b', 'c'])
  // The last value came at 5 s; the generator itself takes 10 s.
  assert.equal(took, 10)
})

test('given any number of values and CPUs, a simulated generator should be as slow as its formula says', () =>
  fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 2, max: 5 }), async (count, cpus) => {
      const made = generator('counted', { compute: 12, ready: count })
      const took = await seconds(cpus, async () => {
        for await (const value of made()) use(value)
      })
      // Users of the values run on the CPUs that the generator leaves, and on all after its end.
      const free: number[] = Array.from({ length: cpus }, (_, i) => (i === 0 ? 12 : 0))
      for (let i = 1; i <= count; i++) {
        free.sort((a, b) => a - b)
        free[0] = Math.max(free[0] as number, (12 * i) / count) + 4
      }
      assert.ok(Math.abs(took - Math.max(12, ...free)) < 1e-6, `${took}, not ${Math.max(12, ...free)}`)
    }),
    { numRuns: 40 },
  ))

test('results of a task that calls ready should be there before its end', async () => {
  const parts = task(
    { name: 'parts', returns: 2, cost: { compute: 10, ready: [0.2] } },
    (): [number, number] => [0, 0],
  )
  const took = await seconds(2, async () => {
    const [first] = parts()
    use(together(first))
    await Promise.resolve()
  })
  assert.equal(took, 10)
  const late = await seconds(2, async () => {
    const [, second] = parts()
    use(together(second))
    await Promise.resolve()
  })
  assert.equal(late, 14)
})

test('given any streams, a task that takes them should compute for each value when it has come', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 0, max: 20 }),
      async (counts, compute) => {
        const takes = task({ name: 'takes', cost: { compute } }, (..._all: AsyncIterable<number>[]) => 0)
        const made = (i: number) => generator(`made${i}`, { compute: 10 * (i + 1), ready: counts[i] ?? 0 })
        const took = await seconds(counts.length + 1, async () => {
          takes(...counts.map((_, i) => made(i)()))
          await Promise.resolve()
        })
        const all = counts.reduce((sum, count) => sum + count, 0)
        // It begins when each stream has a value, or has ended without one.
        let at = Math.max(...counts.map((count, i) => (10 * (i + 1)) / Math.max(1, count)))
        counts.forEach((count, i) => {
          const length = 10 * (i + 1)
          for (let value = 1; value <= count; value++)
            at = Math.max(at, (length * value) / count) + compute / all
          at = Math.max(at, length)
        })
        if (all === 0) at += compute
        assert.ok(Math.abs(took - at) < 1e-6, `${took}, not ${at}`)
      },
    ),
    { numRuns: 60 },
  ))

test('a simulated task that waits for values should hold no CPU meanwhile', async () => {
  const made = generator('slow', { compute: 10, ready: [0.1, 1] })
  const takes = task({ name: 'taker', cost: { compute: 2 } }, (_all: AsyncIterable<number>) => 0)
  const first = task({ name: 'first', cost: { compute: 1 } }, () => 0)
  const other = task({ name: 'other', priority: -1, cost: { compute: 7 } }, () => 0)
  const took = await seconds(2, async () => {
    takes(made())
    first()
    other()
    await Promise.resolve()
  })
  // The taker computes from 1 to 2 s and from 10 to 11 s, the other from 2 to 9 s on the same CPU.
  assert.equal(took, 11)
})

test('a simulated generator that takes a stream should make its values as those that it takes come', async () => {
  const numbers = generator('numbers', { compute: 10, ready: 5 })
  const squares = task(
    { name: 'squares', cost: { compute: 5, ready: 5 } },
    async function* (_numbers: AsyncIterable<number>): AsyncGenerator<number> {
      yield await Promise.resolve(0)
    },
  )
  const took = await seconds(5, async () => {
    for await (const value of squares(numbers())) use(value)
  })
  // A number comes every 2 s; its square 1 s later; the last use takes 4 s from 11 s on.
  assert.equal(took, 15)
})

test('what a simulation cannot know of values should be said, with what to write', async () => {
  const cases: [object, RegExp][] = [
    [{ compute: 1 }, /generator, and its cost has no ready/],
    [{ compute: 1, ready: -1 }, /cost\.ready is '-1'/],
    [{ compute: 1, ready: [0.5, 2] }, /cost\.ready is '0\.5,2'/],
    [{ compute: 1, ready: 1e12 }, /cost\.ready is/],
    [{ compute: 1e300, ready: 1 }, /cost\.compute is '1e\+300', which is not seconds/],
    [{ computing: 1, ready: 1 }, /cost has no 'computing'; did you mean compute\?/],
    [
      {
        ready: () => {
          throw new Error('unknown')
        },
      },
      /cost\.ready threw: unknown/,
    ],
  ]
  for (const [i, [cost, message]] of cases.entries()) {
    const made = generator(`bad${i}`, cost)
    await assert.rejects(
      seconds(1, async () => {
        for await (const value of made()) use(value)
      }),
      { message },
    )
  }
  const plain = task({ name: 'plain', cost: { compute: 1, ready: 2 } }, () => 0)
  await assert.rejects(
    seconds(1, async () => void (await plain())),
    /plain has no results/,
  )
})

test('what the program throws should be called its own, with where it was', async () => {
  const failing = seconds(1, async () => {
    await use(1)
    throw new TypeError('boom')
  })
  await assert.rejects(failing, (error: Error) => {
    assert.match(error.message, /^program failed: TypeError: boom\n\s+at .*streams\.test\.ts/)
    assert.equal((error as { code?: string }).code, 'MR_SIMULATION')
    return true
  })
})
