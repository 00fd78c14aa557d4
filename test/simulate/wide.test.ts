import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FILE_OUT, IN } from '../../src/model/options/directions.ts'
import { setHost } from '../../src/model/client.ts'
import { mpi } from '../../src/model/mpi/mpi.ts'
import { task } from '../../src/model/task.ts'
import { SimulatedHost, programWorkload } from '../../src/simulate/program/program.ts'
import { simulate } from '../../src/simulate/simulate.ts'

/** Seconds that a program takes on nodes with so many CPUs. */
async function seconds(cpus: readonly number[], body: () => unknown): Promise<number> {
  const host = new SimulatedHost()
  setHost(host)
  const nodes = cpus.map((count, i) => ({ name: `n${i}`, cpus: count, memory: 1e12, tags: [`n${i}`] }))
  const { tasksEnded } = await simulate(programWorkload('program', body, host), { platform: { nodes } })
  return tasksEnded
}

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
