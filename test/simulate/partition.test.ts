import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PARTITION_NAMES } from '../../src/cli/partition-option.ts'
import { Datum } from '../../src/core/data/datum.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'
import { PARTITION_WAYS } from '../../src/node/processes/gpmetis.ts'
import type { PartitionWay } from '../../src/node/processes/gpmetis.ts'
import { inputFile } from '../../src/simulate/input/workload.ts'
import type { Workload } from '../../src/simulate/input/workload.ts'
import type { SimulatedOutcome } from '../../src/simulate/outcome.ts'
import { simulate } from '../../src/simulate/simulate.ts'

const disk = { name: 'd', path: '/d', read: 100, write: 100, capacity: null }
const nodes = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    name: `n${i}`,
    cpus: 2,
    memory: 1,
    tags: [],
    storage: [disk],
    link: 20,
  }))

/** Neighbours overlap: each picture, and then each pair of them. Pictures come in an order that says nothing. */
const overlaps = (count: number): Workload => ({
  name: 'overlaps',
  begin(simulation) {
    const one = (name: string) => ({ kind: simulation.kind(name), demand: demandOf(1, 0, []) })
    const pictures = Array.from({ length: count }, (_, i) => new Datum(`/p${i}`, false, false))
    for (let i = 0; i < count; i++) {
      const at = (i * 7) % count
      const raw = inputFile(simulation, new Datum(`/raw${at}`), 1, at)
      const accesses = [
        { datum: raw, mode: 'in' as const },
        { datum: pictures[at] as Datum, mode: 'out' as const },
      ]
      simulation.submit(one('project'), accesses, { compute: 1000, bytes: [1, 100] })
    }
    for (let i = 0; i + 1 < count; i++) {
      const accesses = [pictures[i] as Datum, pictures[i + 1] as Datum].map(datum => ({
        datum,
        mode: 'in' as const,
      }))
      simulation.submit(one('compare'), accesses, { compute: 1000, bytes: [100, 100] })
    }
  },
})

const run = (partition?: PartitionWay): Promise<SimulatedOutcome> =>
  simulate(overlaps(40), { platform: { nodes: nodes(4) }, ...(partition && { partition }) })

test('a graph that is divided moves at most half of the bytes, in less time', async () => {
  const [plain, divided] = [await run(), await run('greedy')]
  assert.equal(divided.tasks, plain.tasks)
  assert.ok(divided.between <= plain.between / 2, `${divided.between} of ${plain.between} bytes`)
  assert.ok(divided.makespan < plain.makespan, `${divided.makespan} and ${plain.makespan} s`)
  assert.deepEqual(await run('greedy'), divided)
})

test('idle nodes take over what is assigned to one that has much more to do', async () => {
  // The second node is the faster one, which the division does not know.
  const platform = { nodes: nodes(2).map((node, i) => ({ ...node, speed: i === 1 ? 20 : 1 })) }
  const many: Workload = {
    name: 'many',
    begin(simulation) {
      for (let i = 0; i < 100; i++) {
        simulation.submit({ kind: simulation.kind('t'), demand: demandOf(1, 0, []) }, [], { compute: 1000 })
      }
    },
  }
  const { makespan } = await simulate(many, { platform, partition: 'greedy' })
  assert.ok(makespan < 10, `${makespan} s, where one node by itself takes 25 s for its half`)
})

test('the command line knows the ways to divide a graph', () => {
  assert.deepEqual(PARTITION_NAMES, PARTITION_WAYS)
})
