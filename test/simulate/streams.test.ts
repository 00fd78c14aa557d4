import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { setHost } from '../../src/model/client.ts'
import { task } from '../../src/model/task.ts'
import { SimulatedHost, programWorkload } from '../../src/simulate/program.ts'
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
  const made = generator('given', { compute: 1, ready: 2 })
  const takes = task({ name: 'takes', cost: {} }, (_values: AsyncIterable<number>) => 0)
  await assert.rejects(
    seconds(1, async () => void (await takes(made()))),
    /takes takes a stream/,
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
