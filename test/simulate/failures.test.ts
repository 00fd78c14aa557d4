import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { failuresOf } from '../../src/cli/simulate/simulate-failures.ts'
import { Datum } from '../../src/core/data/datum.ts'
import type { RunEvent } from '../../src/core/events.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'
import type { FailureOptions } from '../../src/simulate/failures.ts'
import type { Workload } from '../../src/simulate/input/workload.ts'
import { randomFrom } from '../../src/simulate/machine/random.ts'
import type { SimulatedOutcome } from '../../src/simulate/outcome.ts'
import { simulate } from '../../src/simulate/simulate.ts'

const disk = { name: 'd', path: '/d', read: 100, write: 100, capacity: null }
const platform = (count: number, cpus = 1) => ({
  nodes: Array.from({ length: count }, (_, i) => ({
    name: `n${i}`,
    cpus,
    memory: 1,
    tags: [],
    storage: [disk],
    link: 100,
  })),
})

/** A, then B of what A made, then C of what B made; each writes 100 bytes to the disk of its node, which takes a second. */
const chains = (count: number, size = 100): Workload => ({
  name: 'chains',
  begin(simulation) {
    for (let i = 0; i < count; i++) {
      let before: Datum | null = null
      for (const name of ['A', 'B', 'C']) {
        const made = new Datum(`/${name}${i}`, false, false)
        const accesses = [
          ...(before ? [{ datum: before, mode: 'in' as const }] : []),
          { datum: made, mode: 'out' as const },
        ]
        const bytes = before ? [size, size] : [size]
        simulation.submit({ kind: simulation.kind(name), demand: demandOf(1, 0, []) }, accesses, {
          compute: 1000,
          bytes,
        })
        before = made
      }
    }
  },
})

interface Ran {
  outcome: SimulatedOutcome
  events: RunEvent[]
}

async function run(workload: Workload, nodes: number, failures: FailureOptions, cpus = 1): Promise<Ran> {
  const events: RunEvent[] = []
  const observer = (event: RunEvent): void => void events.push(event)
  const outcome = await simulate(workload, { platform: platform(nodes, cpus), failures, observer })
  return { outcome, events }
}

/** By kind: how often tasks of it have ended. */
function endedByKind(events: readonly RunEvent[]): Record<string, number> {
  const kinds = new Map<number, string>()
  const kindOf = new Map<number, string>()
  const counts: Record<string, number> = {}
  for (const event of events) {
    if (event.type === 'kind-defined') kinds.set(event.kind, event.name)
    if (event.type === 'submitted') kindOf.set(event.task, kinds.get(event.kind) ?? '')
    if (event.type !== 'finished') continue
    const kind = kindOf.get(event.task) ?? ''
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

test('what a lost node had made is made again, as far back as it is gone', async () => {
  // A ends after 2 s, B after 5, C would after 8. All of it is on n0 when that is lost.
  const { outcome, events } = await run(chains(1), 2, { lose: [{ node: 'n0', at: 6500 }] })
  assert.deepEqual(endedByKind(events), { A: 2, B: 2, C: 1 })
  assert.equal(outcome.tasks, 3)
  assert.equal(outcome.remade, 2)
  assert.equal(outcome.nodesLost, 1)
  assert.equal(outcome.makespan, 6.5 + 8)
  assert.ok(outcome.lostTime > 0)
})

test('what is still on other nodes is not made again', async () => {
  // A node that joins gets nothing of what was lost; both chains were on nodes of their own.
  const { outcome, events } = await run(chains(2), 2, { lose: [{ node: 'n1', at: 3000 }] })
  assert.deepEqual(endedByKind(events), { A: 3, B: 2, C: 2 })
  assert.equal(outcome.tasks, 6)
})

test('a result that no task reads is made again, too', async () => {
  const two: Workload = {
    name: 'two',
    begin(simulation) {
      for (const [i, compute] of [1000, 60_000].entries()) {
        const file = new Datum(`/f${i}`, false, false)
        simulation.submit(
          { kind: simulation.kind(`t${i}`), demand: demandOf(1, 0, []) },
          [{ datum: file, mode: 'out' }],
          { compute, bytes: [100] },
        )
      }
    },
  }
  const { events, outcome } = await run(two, 2, { lose: [{ node: 'n0', at: 9000 }] })
  assert.deepEqual(endedByKind(events), { t0: 2, t1: 1 })
  // It waits for the only node that is left.
  assert.equal(outcome.makespan, 61 + 2)
})

test('a node that is lost is replaced, and the run waits for it', async () => {
  const failures = { lose: [{ node: 'n0', at: 1500 }], replaceAfter: 60_000 }
  const { outcome, events } = await run(chains(1), 1, failures)
  assert.equal(outcome.makespan, 61.5 + 8)
  const joined = events.find(({ type }) => type === 'node-joined')
  assert.equal(joined?.at, 61_500)
  assert.ok(events.some(event => event.type === 'node-left' && event.isLost))
})

test('without a node left the simulation ends with an error that says so', async () => {
  await assert.rejects(run(chains(1), 1, { lose: [{ node: 'n0', at: 1500 }] }), {
    code: 'MR_SIMULATION',
    message: /no node is left, and 3 tasks have not ended/,
  })
})

test('losses after the last task has ended do not count', async () => {
  const { outcome } = await run(chains(1), 2, {
    lose: [{ node: 'n1', at: 9e6 }],
    wallTime: 8e6,
    replaceAfter: 1000,
  })
  assert.equal(outcome.makespan, 8)
  assert.equal(outcome.nodesLost, 0)
})

test('nodes whose time is over are drained, and begin nothing that takes longer', async () => {
  const { nodes } = platform(2)
  const shared = { ...disk, shared: true }
  const events: RunEvent[] = []
  const outcome = await simulate(chains(12), {
    platform: { nodes: nodes.map(node => ({ ...node, storage: [shared] })) },
    failures: { wallTime: 30_000, replaceAfter: 5000 },
    observer: event => void events.push(event),
  })
  assert.equal(outcome.tasks, 36)
  assert.equal(outcome.remade, 0)
  assert.ok(outcome.nodesLost >= 2)
  assert.equal(outcome.lostTime, 0)
  assert.ok(events.every(({ type }) => type !== 'returned'))
})

test('what only a node has is moved before its time is over', async () => {
  // The second node is replaced once, so that the two do not end together.
  const failures = { wallTime: 30_000, replaceAfter: 1000, lose: [{ node: 'n1', at: 5000 }] }
  const { outcome, events } = await run(chains(20, 1), 2, failures)
  assert.equal(outcome.tasks, 60)
  const first = events.find(event => event.type === 'node-left' && !event.isLost)
  assert.equal(first?.at, 30_000)
  // Only what was lost with n1 was made again.
  const again = events.filter(event => event.type === 'submitted' && event.at > 0)
  assert.ok(again.length > 0 && again.every(({ at }) => at === 5000), JSON.stringify(again))
})

test('where more is lost than can be made, the simulation ends with an error', async () => {
  await assert.rejects(run(chains(12), 2, { wallTime: 30_000, replaceAfter: 5000 }), {
    code: 'MR_SIMULATION',
    message: /no node is left/,
  })
})

test('a node that ends before any task can is not replaced for ever', async () => {
  await assert.rejects(run(chains(1), 1, { wallTime: 2500, replaceAfter: 1000 }), { code: 'MR_SIMULATION' })
})

/** Tasks that read up to three of the last twenty files, on disks of nodes. */
const random = (tasks: number, seed: number): Workload => ({
  name: 'random',
  begin(simulation) {
    const chance = randomFrom(seed)
    const made: Datum[] = []
    for (let i = 0; i < tasks; i++) {
      const reads = new Set<Datum>()
      for (let n = Math.floor(chance() * 4); n > 0 && i > 0; n--) {
        reads.add(made[Math.max(0, i - 1 - Math.floor(chance() * 20))] as Datum)
      }
      const own = new Datum(`/f${i}`, false, false)
      if (chance() < 0.5) own.temporary = true
      const accesses = [
        ...[...reads].map(datum => ({ datum, mode: 'in' as const })),
        { datum: own, mode: 'out' as const },
      ]
      simulation.submit(
        { kind: simulation.kind(`k${i % 3}`), demand: demandOf(1 + (i % 2), 0, []) },
        accesses,
        { compute: 500 + 1000 * chance(), bytes: accesses.map(() => 50) },
      )
      made.push(own)
    }
  },
})

test('random graphs end with each task once, however nodes are lost and replaced', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 2, max: 6 }),
      fc.integer({ min: 1, max: 1e6 }),
      fc.integer({ min: 40_000, max: 90_000 }),
      async (tasks, nodes, seed, every) => {
        const failures = { every, replaceAfter: 3000 }
        const workload = random(tasks, seed)
        const outcome = await simulate(workload, { platform: platform(nodes, 2), failures, seed })
        assert.equal(outcome.tasks, tasks)
        assert.deepEqual(
          await simulate(random(tasks, seed), { platform: platform(nodes, 2), failures, seed }),
          outcome,
        )
      },
    ),
    { numRuns: 150 },
  )
})

test('losses are read from the command line, and what is wrong with them is said', () => {
  const given = (values: Record<string, string[]>) => ({
    flags: new Map(),
    values: new Map(Object.entries(values)),
    operands: [],
    rest: [],
  })
  const read = (values: Record<string, string[]>) => failuresOf(given(values), platform(3))
  assert.equal(read({ 'replace-after': ['1min'] }), null)
  assert.deepEqual(read({ 'lose-node': ['n0@90s', 'n2@1h'], 'replace-after': ['1min'] }), {
    lose: [
      { node: 'n0', at: 90_000 },
      { node: 'n2', at: 3_600_000 },
    ],
    replaceAfter: 60_000,
  })
  assert.deepEqual(read({ 'lose-every': ['10min'], 'wall-time': ['2h'] }), {
    lose: [],
    every: 600_000,
    wallTime: 7_200_000,
  })
  assert.throws(() => read({ 'lose-node': ['n7@90s'] }), { code: 'MR_OPTION', message: /no node 'n7'/ })
  assert.throws(() => read({ 'lose-node': ['90s'] }), { code: 'MR_OPTION', message: /names no node/ })
  assert.throws(() => read({ 'lose-node': ['n1@soon'] }), {
    code: 'MR_UNIT',
    message: /'soon' is not a time/,
  })
})
