import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FILE_OUT, IN } from '../../src/model/options/directions.ts'
import type { SimulatedOutcome } from '../../src/simulate/outcome.ts'
import type { FailureOptions } from '../../src/simulate/failures.ts'
import { setHost } from '../../src/model/client.ts'
import { mpi } from '../../src/model/mpi/mpi.ts'
import { task } from '../../src/model/task.ts'
import { SimulatedHost, programWorkload } from '../../src/simulate/program/program.ts'
import { simulate } from '../../src/simulate/simulate.ts'

/** How a program goes on nodes with so many CPUs. */
async function outcome(
  cpus: readonly number[],
  body: () => unknown,
  failures?: FailureOptions,
): Promise<SimulatedOutcome> {
  const host = new SimulatedHost()
  setHost(host)
  const nodes = cpus.map((count, i) => ({ name: `n${i}`, cpus: count, memory: 1e12, tags: [`n${i}`] }))
  return simulate(programWorkload('program', body, host), {
    platform: { nodes },
    ...(failures && { failures }),
  })
}

/** Seconds that it takes. */
const seconds = async (...run: Parameters<typeof outcome>): Promise<number> =>
  (await outcome(...run)).tasksEnded

const never = (): never => {
  throw new Error('never run')
}
const wide = (name: string, processes: number | { min: number; max: number }, cost: object, more = {}) =>
  mpi({ name, processes, cost, ...more } as { processes: number }, never)

test('a simulated MPI task should take its time on one CPU over its speed-up, which is on lines between the numbers given', async () => {
  const cost = { compute: 60, speedUp: { 2: 1.5, 6: 3.5 } }
  for (const [ranks, expected] of [
    [1, 60],
    [2, 40],
    [4, 24],
    [6, 60 / 3.5],
    [8, 60 / 3.5],
  ] as const) {
    assert.equal(await seconds([8], () => void wide(`w${ranks}`, ranks, cost)()), expected)
  }
  const root = { compute: 60, speedUp: (cpus: number) => Math.sqrt(cpus) }
  assert.equal(await seconds([4], () => void wide('root', 4, root)()), 30)
  assert.equal(await seconds([4], () => void wide('given', 4, { compute: 7 })()), 7)
  const threads = task({ name: 'threads', cpus: 4, cost }, never)
  assert.equal(await seconds([4], () => void threads()), 24)
})

test('given any nodes and ranks, a simulated wide task should run once all its CPUs are free, over nodes where they are together enough', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 24 }),
      fc.integer({ min: 0, max: 10 }),
      async (cpus, ranks, before) => {
        const all = cpus.reduce((sum, count) => sum + count, 0)
        const one = task({ name: 'one', cost: { compute: 10 } }, never)
        const run = (): Promise<number> =>
          seconds(cpus, () => {
            for (let i = 0; i < before; i++) one()
            wide('wide', ranks, { compute: 5 })()
          })
        if (ranks > all) return assert.rejects(run, { code: 'MR_CONSTRAINT' })
        // The others start first, all that have a CPU at the same time; the wide one when so many are free again.
        const rounds = Math.floor(before / all)
        const left = before % all
        const free = left === 0 || all - left >= ranks ? rounds : rounds + 1
        const took = await run()
        const latest = Math.max(Math.ceil(before / all) * 10, free * 10 + 5)
        assert.ok(took <= latest + 5, `${took} s, at most ${latest + 5}`)
        assert.ok(took >= Math.max(5, Math.ceil(before / all) * 10 - 0))
      },
    ),
    { numRuns: 60 },
  ))

test('of a range of ranks, the fastest should be used where nothing waits, and the cheapest in a crowd', async () => {
  const cost = { compute: 64, speedUp: { 2: 1.6, 4: 2.5, 8: 4 } }
  const used = async (ranks: { min: number; max: number } | number, calls: number): Promise<number> =>
    seconds([8], async () => {
      const molded = wide('molded', ranks, cost)
      // Each number is tried once.
      if (typeof ranks === 'object') for (let i = 0; i < 4; i++) await molded()
      for (let i = 0; i < calls; i++) molded()
    })
  const trials = 64 + 40 + 25.6 + 16
  assert.equal(await used({ min: 1, max: 8 }, 1), trials + 16)
  // 80 tasks on 8 CPUs: 640 s one CPU each, 1280 s with eight.
  const crowd = (await used({ min: 1, max: 8 }, 80)) - trials
  assert.ok(crowd <= 1.1 * (await used(1, 80)), `${crowd} s`)
})

test('what ranks release should be there before the end of all, in the time of all their CPUs', async () => {
  const reader = mpi(
    {
      name: 'reader',
      processes: 4,
      returns: 'each',
      cost: { compute: 40, speedUp: { 4: 4 }, ready: [0.1, 0.2, 0.5] },
    },
    never,
  )
  const use = task({ name: 'use', cost: { compute: 2 } }, (_record: unknown): number => 0)
  const ended: number[] = []
  const took = await seconds([4, 1], async () => {
    const records = reader() as unknown as unknown[]
    for (const record of records) use(record)
    ended.push(records.length)
  })
  assert.deepEqual(ended, [4])
  // At 1, 2, 5 and 10 s; one CPU beside the ranks.
  assert.equal(took, 12)
})

test('a wide task whose tags are on too few CPUs should be refused, also if other nodes have more', async () => {
  const tagged = wide('tagged', 4, { compute: 1 }, { tags: ['n0'] })
  await assert.rejects(
    seconds([2, 8], () => void tagged()),
    { code: 'MR_CONSTRAINT' },
  )
})

test('a speed-up that is none should be refused with the name of the task', async () => {
  for (const [speedUp, text] of [
    [{ 2: 0 }, /task bad: cost.speedUp is '0' on 2 CPUs/],
    [3, /cost.speedUp is '3'/],
    [() => Number.NaN, /cost.speedUp is 'NaN' on 2 CPUs/],
    [{ x: 2 }, /cost.speedUp is '2' on NaN CPUs/],
  ] as const) {
    const bad = wide('bad', 2, { compute: 1, speedUp })
    await assert.rejects(
      seconds([2], () => void bad()),
      { message: text },
    )
  }
})

test('a file that ranks write together should be there once, after their time', async () => {
  const save = mpi(
    {
      name: 'save',
      processes: 2,
      params: [IN, FILE_OUT],
      cost: { compute: 10, speedUp: { 2: 2 }, writes: '1MB' },
    },
    (_comm, _value: number, _path: string): number => never(),
  )
  assert.equal(await seconds([2], () => save(1, 'out')), 5)
})

test('given any wide and narrow tasks, all should end, none before it has its CPUs, and CPUs that a wide one waits for are used meanwhile', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.record({ ranks: fc.integer({ min: 1, max: 16 }), time: fc.integer({ min: 1, max: 9 }) }), {
        minLength: 1,
        maxLength: 12,
      }),
      async (cpus, tasks) => {
        const all = cpus.reduce((sum, count) => sum + count, 0)
        const fitting = tasks.map(({ ranks, time }) => ({ ranks: Math.min(ranks, all), time }))
        const took = await seconds(cpus, () => {
          fitting.forEach(({ ranks, time }, i) => void wide(`w${i}`, ranks, { compute: time })())
        })
        const work = fitting.reduce((sum, { ranks, time }) => sum + ranks * time, 0)
        const oneByOne = fitting.reduce((sum, { time }) => sum + time, 0)
        assert.ok(took >= work / all - 1e-6, `${took} s for ${work} s on ${all} CPUs`)
        assert.ok(took <= oneByOne + 1e-6, `${took} s, and ${oneByOne} s one by one`)
      },
    ),
    { numRuns: 200 },
  ))

test('narrow tasks should run beside a wide one that waits, and it should come to its turn', async () => {
  const long = task({ name: 'long', cost: { compute: 100 } }, never)
  const short = task({ name: 'short', cost: { compute: 1 } }, never)
  const order: string[] = []
  const took = await seconds([2, 2], async () => {
    long()
    const ends = [wide('gang', 4, { compute: 5 })().then(() => order.push('gang'))]
    for (let i = 0; i < 60; i++) ends.push(short().then(() => order.push('short')))
    await Promise.all(ends)
  })
  assert.equal(order.length, 61)
  // Some went on before it, on the three CPUs that were free; not all, or it might never have all four.
  assert.ok(order.indexOf('gang') >= 12 && order.indexOf('gang') <= 30, String(order.indexOf('gang')))
  assert.ok(took <= 100 + 5 + 60 / 4, `${took} s`)
})

test('a wide task should begin again when any of its nodes is lost', async () => {
  for (const node of ['n0', 'n1']) {
    const took = await seconds([2, 2, 2], () => void wide('gang', 4, { compute: 5 })(), {
      lose: [{ node, at: 2000 }],
    })
    assert.equal(took, 7, node)
  }
  // It had nothing on the third.
  const lose = [{ node: 'n2', at: 2000 }]
  assert.equal(await seconds([2, 2, 2], () => void wide('gang', 4, { compute: 5 })(), { lose }), 5)
})

test('no wide task should begin on nodes of which one ends too early', async () => {
  const failures = { wallTime: 100_000, replaceAfter: 1000 }
  const { tasksEnded, lostTime } = await outcome(
    [2, 2],
    async () => {
      const gang = wide('gang', 4, { compute: 60 })
      await gang()
      await gang()
    },
    failures,
  )
  // The second one waits for the nodes that come after 101 s.
  assert.deepEqual([tasksEnded, lostTime], [161, 0])
})
