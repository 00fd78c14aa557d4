import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Datum } from '../../src/core/data/datum.ts'
import type { RunEvent } from '../../src/core/events.ts'
import { demandOf, ioDemandOf } from '../../src/core/tasks/demand.ts'
import { journalWorkload } from '../../src/simulate/input/journal-workload.ts'
import { RunReader } from '../../src/simulate/input/recorded-run.ts'
import type { RecordedRun } from '../../src/simulate/input/recorded-run.ts'
import { recordedPlatform } from '../../src/simulate/input/recorded-platform.ts'
import { simulate } from '../../src/simulate/simulate.ts'
import { splitTimes } from '../../src/simulate/input/split-time.ts'
import type { Workload } from '../../src/simulate/input/workload.ts'

const disk = { name: 'd', path: '/d', read: 100, write: 100, capacity: null }
const platformWith = (cpus: number, cache = 0) => ({
  nodes: [{ name: 'n', cpus, memory: 1000, tags: [], storage: [disk], cache }],
})

interface Given {
  seconds: number
  bytes: number
  isIo: boolean
  /** Reads what this one made. */
  after: number | null
}

const workload = (tasks: readonly Given[]): Workload => ({
  name: 'w',
  begin(simulation) {
    const files = tasks.map((_, i) => new Datum(`/d/f${i}`, false, false))
    tasks.forEach(({ seconds, bytes, isIo, after }, i) => {
      const input = after === null ? null : files[after]
      simulation.submit(
        {
          kind: simulation.kind(isIo ? 'io' : 'c'),
          demand: isIo ? ioDemandOf({ size: bytes }) : demandOf(1, 0, []),
        },
        [
          ...(input ? [{ datum: input, mode: 'in' as const }] : []),
          { datum: files[i] as Datum, mode: 'out' as const },
        ],
        { compute: seconds * 1000, bytes: [...(input ? [tasks[after as number]?.bytes ?? 0] : []), bytes] },
      )
    })
  },
})

async function record(tasks: readonly Given[], cpus: number): Promise<{ run: RecordedRun; took: number }> {
  const reader = new RunReader()
  const observer = (event: RunEvent): void => reader.observe(event)
  const { makespan } = await simulate(workload(tasks), { platform: platformWith(cpus), observer })
  return { run: reader.run('events'), took: makespan }
}

const flat = (count: number, seconds: number, bytes: number): Given[] =>
  Array.from({ length: count }, () => ({ seconds, bytes, isIo: false, after: null }))

const near = (actual: number, expected: number, by = 1e-6): void =>
  assert(Math.abs(actual - expected) <= by * Math.max(1, expected), `${actual}, not ${expected}`)

const computed = (run: RecordedRun): number[] => [...splitTimes(run).values()].map(({ compute }) => compute)

test('alone, a task computed in the time that its bytes did not take', async () => {
  const { run } = await record(flat(1, 2, 100), 1)
  near(computed(run)[0] as number, 2000)
})

test('tasks that only move bytes computed nothing, however many there were at once', async () => {
  const { run } = await record(flat(8, 0, 50), 8)
  for (const one of computed(run)) near(one, 0, 1e-3)
})

test('what others have of a device is taken into account, until it agrees', async () => {
  const run = (await record(flat(1, 5, 100), 1)).run
  // Two at once for 6 s, each with 100 bytes of a device that passes 100 in a second. Where f is the share of time in
  // which each moves bytes, 6 f = 1 + f.
  const [task] = run.tasks
  assert(task)
  const both = { ...run, tasks: [task, { ...task, id: task.id + 1 }] }
  for (const one of computed(both)) near(one, 4800, 1e-3)
})

test('what was faster than the device can be went to memory, and does so again', async () => {
  const { run } = await record(flat(1, 0, 100), 1)
  const fast = { ...run, tasks: run.tasks.map(task => ({ ...task, endedAt: task.startedAt + 10 })) }
  assert.deepEqual([...splitTimes(fast).values()], [{ compute: 10, read: [], written: [0] }])
})

test('without known devices all time is computing', async () => {
  const { run } = await record(flat(1, 2, 100), 1)
  const { devices: _devices, ...facts } = run.facts
  near(computed({ ...run, facts })[0] as number, 3000)
})

const tasks = fc.array(
  fc.record({
    seconds: fc.integer({ min: 0, max: 9 }),
    bytes: fc.integer({ min: 1, max: 400 }),
    isIo: fc.boolean(),
    after: fc.option(fc.nat(20), { nil: null }),
  }),
  { minLength: 1, maxLength: 20 },
)
const inOrder = (given: Given[]): Given[] =>
  given.map((one, i) => ({ ...one, after: one.after === null || i === 0 ? null : one.after % i }))

test('given any tasks one after the other, the replay of their run takes as long as the run', async () => {
  await fc.assert(
    fc.asyncProperty(tasks, async given => {
      const chain = inOrder(given).map((one, i) => ({ ...one, isIo: false, after: i === 0 ? null : i - 1 }))
      const { run, took } = await record(chain, 1)
      // The run had no page cache, so the replay has none.
      const { makespan } = await simulate(journalWorkload(run), { platform: platformWith(1) })
      // Reading what the run made is taken to have come from memory, and is computing then.
      assert(makespan >= took - 1e-6, `${makespan} after ${took}`)
      const again = await simulate(journalWorkload(run), { platform: recordedPlatform(run) })
      near(again.makespan, took)
    }),
  )
})

test('given any tasks at once, the replay is near the run, and what a device passes is the same', async () => {
  let worst = 0
  await fc.assert(
    fc.asyncProperty(tasks, async given => {
      const { run, took } = await record(
        inOrder(given).map(one => ({ ...one, after: null })),
        3,
      )
      const again = await simulate(journalWorkload(run), { platform: recordedPlatform(run) })
      worst = Math.max(worst, Math.abs(again.makespan - took) / took)
      const sum = given.reduce((all, { bytes }) => all + bytes, 0)
      near(again.devices[0]?.written ?? 0, sum)
    }),
  )
  assert(worst < 0.5, `one replay was off by ${worst}`)
})

test('a device that is ten times as fast takes ten times less for the bytes, and computing stays', async () => {
  const { run } = await record(flat(1, 2, 100), 1)
  const fast = { nodes: [{ ...platformWith(1).nodes[0]!, storage: [{ ...disk, write: 1000 }] }] }
  near((await simulate(journalWorkload(run), { platform: fast })).makespan, 2.1)
})

test('what a task made before its end is released as far into its computing as it was', async () => {
  const reader = new RunReader()
  const eager: Workload = {
    name: 'eager',
    begin(simulation) {
      const parts = [1, 2, 3, 4].map(() => new Datum(null, false, false))
      const kind = simulation.kind('t')
      const demand = demandOf(1, 0, [])
      simulation.submit(
        { kind, demand },
        parts.map(datum => ({ datum, mode: 'out' as const })),
        { compute: 4000, eager: true },
      )
      for (const datum of parts)
        simulation.submit({ kind, demand }, [{ datum, mode: 'in' }], { compute: 1000 })
    },
  }
  const { makespan } = await simulate(eager, {
    platform: platformWith(2),
    observer: event => reader.observe(event),
  })
  assert.equal(makespan, 5)
  const again = await simulate(journalWorkload(reader.run('e')), { platform: platformWith(2) })
  near(again.makespan, 5)
})

/** The journal of a run on one CPU, as far as it matters here. */
function recorded(events: readonly RunEvent[]): RecordedRun {
  const reader = new RunReader()
  const started = {
    type: 'run-started' as const,
    at: 0,
    run: 'r',
    version: '',
    wallTime: '',
    program: '',
    args: [],
    cwd: '',
    pid: 0,
  }
  const nodes = [{ name: 'n', cpus: 1, memory: 0 }]
  reader.observe({ ...started, nodes, policy: 'fifo', simulated: false })
  reader.observe({ type: 'kind-defined', at: 0, kind: 1, name: 'k', form: 'function', module: '' })
  for (const event of events) reader.observe(event)
  return reader.run('events')
}

const called = (task: number, at = 0): RunEvent[] => [
  {
    type: 'submitted',
    at,
    task,
    kind: 1,
    group: 0,
    parent: null,
    priority: 0,
    reads: [],
    writes: [],
  } as never,
  { type: 'ready', at, task },
]
const began = (task: number, at: number): RunEvent =>
  ({ type: 'started', at, task, attempt: 1, node: 0, lane: 0, cpus: 1 }) as never
const ended = (task: number, at: number): RunEvent => ({ type: 'finished', at, task, attempt: 1 })

test('a CPU that another task had, which failed, was cancelled, was lost or waited, was not free', () => {
  const others: RunEvent[] = [
    {
      type: 'failed',
      at: 200,
      task: 1,
      attempt: 1,
      failure: { name: 'Error', message: 'no' },
      next: 'ignore',
    } as never,
    { type: 'cancelled', at: 200, task: 1, cause: null, reason: 'so' },
    { type: 'returned', at: 200, task: 1, reason: 'its thread died' },
    { type: 'blocked', at: 200, task: 1, reason: 'for others' },
  ]
  for (const event of others) {
    const run = recorded([...called(1), ...called(2), began(1, 0), event, began(2, 201), ended(2, 301)])
    near(splitTimes(run).get(2)?.compute ?? 0, 101, 1e-9)
    assert.equal(run.left, 1, event.type)
    assert.equal(run.lost, event.type === 'failed' || event.type === 'returned' ? 1 : 0, event.type)
    assert.equal(run.outcome, null)
  }
})
