import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Datum } from '../../src/core/data/datum.ts'
import { POLICIES, fifo, fifoData, lifo, lifoHrf, rank } from '../../src/core/schedule/policy.ts'
import type { Policy } from '../../src/core/schedule/policy.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'
import { simulate } from '../../src/simulate/simulate.ts'
import { inputFile } from '../../src/simulate/input/workload.ts'
import type { Workload } from '../../src/simulate/input/workload.ts'

interface Ran {
  makespan: number
  /** By number of the task, from 1. */
  nodes: Map<number, number>
}

const disk = { name: 'd', path: '/d', read: 100, write: 100, capacity: null }
const nodeOf = (i: number) => ({ name: `n${i}`, cpus: 2, memory: 1, tags: [], storage: [disk], link: 20 })

/** The paper's example on nodes with disks of their own: A_i writes what B_i reads; C reads what all B have written. */
const pairs = (seconds: readonly number[], priority = 0): Workload => ({
  name: 'pairs',
  begin(simulation) {
    const one = (name: string) => ({ kind: simulation.kind(name), demand: demandOf(1, 0, []) })
    const ends: Datum[] = []
    for (const [i, time] of seconds.entries()) {
      const [a, b] = [new Datum(`/a${i}`, false, false), new Datum(`/b${i}`, false, false)]
      const both = [
        { datum: a, mode: 'in' as const },
        { datum: b, mode: 'out' as const },
      ]
      simulation.submit(one('A'), [{ datum: a, mode: 'out' }], { compute: time * 1000, bytes: [100] })
      simulation.submit({ ...one('B'), priority }, both, { compute: 1000, bytes: [100, 10] })
      ends.push(b)
    }
    simulation.submit(
      one('C'),
      ends.map(datum => ({ datum, mode: 'in' as const })),
      { compute: 0, bytes: ends.map(() => 10) },
    )
  },
})

async function run(policy: Policy, seconds: readonly number[], nodes: number, priority = 0): Promise<Ran> {
  const ran: Ran = { makespan: 0, nodes: new Map() }
  const { makespan } = await simulate(pairs(seconds, priority), {
    platform: { nodes: Array.from({ length: nodes }, (_, i) => nodeOf(i)) },
    policy,
    observer: event => {
      if (event.type === 'started') ran.nodes.set(event.task, event.node)
    },
  })
  ran.makespan = makespan
  return ran
}

const close = ({ nodes }: Ran, count: number): number =>
  Array.from({ length: count }, (_, i) => i).filter(i => nodes.get(1 + 2 * i) === nodes.get(2 + 2 * i)).length

for (const policy of [fifo, lifo, fifoData, lifoHrf, rank]) {
  test(`${policy.name}: what a task reads is read where it was made, when all nodes have enough to do`, async () => {
    const ran = await run(
      policy,
      Array.from({ length: 40 }, () => 1),
      4,
    )
    // With one queue for all nodes, lifo reads everything through the network, and takes 87 s.
    assert.equal(close(ran, 40), 40)
    assert(ran.makespan < 50, `${ran.makespan} s`)
  })

  test(`${policy.name}: nodes without work of their own steal what is close to another`, async () => {
    const nodes = new Map<number, number>()
    const fan: Workload = {
      name: 'fan',
      begin(simulation) {
        const one = (name: string) => ({ kind: simulation.kind(name), demand: demandOf(1, 0, []) })
        const datum = new Datum('/a', false, false)
        simulation.submit(one('A'), [{ datum, mode: 'out' }], { compute: 1000, bytes: [100] })
        for (let i = 0; i < 12; i++) {
          simulation.submit(one('B'), [{ datum, mode: 'in' }], { compute: 10_000, bytes: [100] })
        }
      },
    }
    await simulate(fan, {
      platform: { nodes: [nodeOf(0), nodeOf(1), nodeOf(2)] },
      policy,
      observer: event => {
        if (event.type === 'started' && event.task > 1)
          nodes.set(event.node, (nodes.get(event.node) ?? 0) + 1)
      },
    })
    assert.equal(nodes.size, 3)
  })
}

// Not fifo-data: there successors of a task go first on its CPU, wherever their data are.
for (const policy of [fifo, lifo, lifoHrf, rank]) {
  test(`${policy.name}: idle nodes leave each other what is close to them, by its bytes`, async () => {
    const homes = [3, 1, 2, 0]
    const nodes: number[] = []
    const workload: Workload = {
      name: 'far apart',
      begin(simulation) {
        const one = (name: string) => ({ kind: simulation.kind(name), demand: demandOf(1, 0, []) })
        const begin = new Datum('/begin', false, false)
        const small = inputFile(simulation, new Datum('/small'), 10, 0)
        simulation.submit(one('begin'), [{ datum: begin, mode: 'out' }], { compute: 1000, bytes: [1] })
        for (const home of homes) {
          const large = inputFile(simulation, new Datum(`/large${home}`), 100, home)
          const reads = [begin, small, large].map(datum => ({ datum, mode: 'in' as const }))
          simulation.submit(one('use'), reads, { compute: 1000, bytes: [1, 10, 100] })
        }
      },
    }
    await simulate(workload, {
      platform: { nodes: homes.map((_, i) => nodeOf(i)) },
      policy,
      observer: event => {
        if (event.type === 'started' && event.task > 1) nodes[event.task - 2] = event.node
      },
    })
    assert.deepEqual(nodes, homes)
  })
}

test('no node has a free CPU while a task is ready, whatever is close to which node', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...POLICIES),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 2, max: 4 }),
      fc.constantFrom(0, 3, -2),
      async (policy, seconds, nodes, priority) => {
        let [ready, running, at] = [0, 0, 0]
        const check = (): void =>
          assert(ready === 0 || running === nodes * 2, `${ready} ready, ${running} run`)
        await simulate(pairs(seconds, priority), {
          platform: { nodes: Array.from({ length: nodes }, (_, i) => nodeOf(i)) },
          policy,
          observer: event => {
            // Within one moment things happen one after the other.
            if (event.at > at) check()
            at = Math.max(at, event.at)
            if (event.type === 'ready') ready++
            if (event.type === 'started') [ready, running] = [ready - 1, running + 1]
            if (event.type === 'finished') running--
          },
        })
        assert.equal(ready + running, 0)
      },
    ),
    { numRuns: 100 },
  )
})

test('tasks with a priority run where their data are, too', async () => {
  const seconds = [1, 2, 3, 4, 5, 6]
  const ran = await run(fifo, seconds, 3, 7)
  assert.equal(close(ran, seconds.length), seconds.length)
})

test('a policy sees nodes, implementations and data, and says where a task waits', async () => {
  const seen: { kind: string; name: string; bytes: number; allBytes: number; implementations: string }[] = []
  const second: Policy = {
    name: 'second',
    score: () => 0,
    place: ({ kind }, { name, bytes, allBytes, implementations }) => {
      seen.push({ kind: kind.name, name, bytes, allBytes, implementations: implementations.join() })
      return name === 'n1' ? 1 : 0
    },
  }
  const { nodes } = await run(second, [1], 3)
  assert.deepEqual([...nodes.values()], [1, 1, 1])
  const ofB = seen.filter(({ kind }) => kind === 'B')
  assert.deepEqual(
    ofB.map(({ name, bytes, allBytes, implementations }) => [name, bytes, allBytes, implementations]),
    [
      ['n0', 0, 100, 'B'],
      ['n1', 100, 100, 'B'],
      ['n2', 0, 100, 'B'],
    ],
  )
  const wrong: Policy = { name: 'wrong', score: () => 0, place: () => NaN }
  await assert.rejects(run(wrong, [1], 2), { code: 'MR_POLICY' })
})

test('an idle node finds work behind any number of queues that have none for it', async () => {
  const began = new Map<string, Set<number>>()
  const kinds = new Map<number, string>()
  const workload: Workload = {
    name: 'queues',
    begin(simulation) {
      const submit = (name: string, tags: string[]): void => {
        const datum = new Datum(null, false, false)
        const spec = { kind: simulation.kind(name), demand: demandOf(1, 0, tags) }
        simulation.submit(spec, [{ datum, mode: 'out' }], { compute: 1000, bytes: [0] })
      }
      for (let i = 1; i <= 5; i++) for (let k = 0; k < 3; k++) submit(`n${i}`, ['x'])
      for (let k = 0; k < 4; k++) submit('n6', [])
    },
  }
  await simulate(workload, {
    platform: {
      nodes: Array.from({ length: 7 }, (_, i) => ({ ...nodeOf(i), tags: i >= 1 && i <= 5 ? ['x'] : [] })),
    },
    policy: {
      name: 'by-name',
      score: () => 0,
      place: ({ kind }, { name }) => (kind.name === name ? 1 : 0),
    },
    observer: event => {
      if (event.type === 'kind-defined') kinds.set(event.kind, event.name)
      if (event.type === 'submitted') kinds.set(-event.task, kinds.get(event.kind) ?? '')
      if (event.type !== 'started' || event.at > 0) return
      const name = kinds.get(-event.task) ?? ''
      began.set(name, (began.get(name) ?? new Set()).add(event.node))
    },
  })
  assert.deepEqual([...(began.get('n6') ?? [])].sort(), [0, 6])
})
