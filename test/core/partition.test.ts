import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { assignParts } from '../../src/core/schedule/assign.ts'
import { TaskGraph } from '../../src/core/schedule/task-graph.ts'
import { cutOf, limitsOf, loadsOf } from '../../src/general/partition/graph.ts'
import type { Graph } from '../../src/general/partition/graph.ts'
import { partition } from '../../src/general/partition/partition.ts'
import { divide, gpmetis } from '../../src/node/processes/gpmetis.ts'
import { randomFrom } from '../../src/simulate/machine/random.ts'

const hasMetis = (process.env['PATH'] ?? '').split(':').some(folder => existsSync(join(folder, 'gpmetis')))
const withMetis = { skip: !hasMetis && 'gpmetis is not installed (Debian package metis)' }

/** Tasks in a grid: each of a level reads what it and its neighbours of the level before have made. */
function grid(width: number, levels: number): TaskGraph {
  const graph = new TaskGraph()
  for (let level = 0; level < levels; level++) {
    for (let x = 0; x < width; x++) {
      const near = level === 0 ? [] : [x - 1, x, x + 1].filter(at => at >= 0 && at < width)
      const reads = near.map(at => [`${level - 1} ${at}`, at === x ? 100 : 20] as const)
      graph.add(1, reads, [`${level} ${x}`])
    }
  }
  return graph
}

/** Tasks that read up to three of the last things that were made, and inputs that others read too. */
function randomGraph(tasks: number, seed: number, cpus: number): TaskGraph {
  const chance = randomFrom(seed)
  const graph = new TaskGraph()
  for (let i = 0; i < tasks; i++) {
    const reads: [string, number][] = []
    for (let n = Math.floor(chance() * 4); n > 0 && i > 0; n--) {
      const from = Math.max(0, i - 1 - Math.floor(chance() * 40))
      reads.push([`made ${from}`, Math.floor(chance() * 1000)])
    }
    if (chance() < 0.3) reads.push([`input ${Math.floor(chance() * 10)}`, 50])
    graph.add(1 + Math.floor(chance() * cpus), reads, [`made ${i}`])
  }
  return graph
}

function shuffled(graph: Graph, count: number, seed: number): Int32Array {
  const chance = randomFrom(seed)
  return Int32Array.from({ length: graph.size }, () => Math.floor(chance() * count))
}

/** Every vertex has a part, and no part has more of a band than it may. */
function checkEven(graph: Graph, parts: Int32Array, shares: readonly number[]): void {
  assert.equal(parts.length, graph.size)
  for (const part of parts) assert.ok(part >= 0 && part < shares.length, `part ${part}`)
  const limits = limitsOf(graph, shares)
  for (const [i, load] of loadsOf(graph, parts, shares.length).entries()) {
    assert.ok(load <= (limits[i] as number) + 1e-9, `${load} of ${limits[i]} in ${i}`)
  }
}

test('every task gets a node, and each level is spread within its bound, on random graphs', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 400 }),
      fc.array(fc.integer({ min: 1, max: 48 }), { minLength: 2, maxLength: 12 }),
      fc.integer({ min: 1, max: 1e6 }),
      fc.integer({ min: 1, max: 4 }),
      (tasks, shares, seed, cpus) => {
        const graph = randomGraph(tasks, seed, cpus).graph(shares.length)
        checkEven(graph, partition(graph, shares), shares)
      },
    ),
    { numRuns: 200 },
  )
})

test('equal graphs are divided equally', () => {
  const graph = (): Graph => randomGraph(500, 7, 2).graph(6)
  assert.deepEqual(partition(graph(), [1, 1, 1, 1, 1, 1]), partition(graph(), [1, 1, 1, 1, 1, 1]))
})

test('a node with more CPUs gets more of each level', () => {
  const graph = grid(120, 3).graph(3)
  const loads = loadsOf(graph, partition(graph, [4, 4, 8]), 3)
  for (let band = 0; band < graph.bands; band++) {
    assert.ok((loads[2 * graph.bands + band] as number) >= 55, `${loads.join(' ')}`)
  }
})

test('far fewer bytes go between nodes than by chance', () => {
  for (const [name, tasks, most] of [
    ['grid', grid(200, 5), 0.05],
    ['random', randomGraph(2000, 3, 1), 0.5],
  ] as const) {
    const graph = tasks.graph(8)
    const shares = Array.from({ length: 8 }, () => 1)
    const share = cutOf(graph, partition(graph, shares)) / cutOf(graph, shuffled(graph, 8, 1))
    assert.ok(share <= most, `${name}: ${share}`)
  }
})

test('a long chain of tasks stays on one node, and many of them are spread', () => {
  const graph = new TaskGraph()
  for (let step = 0; step < 50; step++) {
    for (let chain = 0; chain < 12; chain++) {
      graph.add(1, step === 0 ? [] : [[`${step - 1} ${chain}`, 1000]], [`${step} ${chain}`])
    }
  }
  const one = graph.graph(4)
  const parts = partition(one, [1, 1, 1, 1])
  assert.equal(cutOf(one, parts), 0)
  checkEven(one, parts, [1, 1, 1, 1])
})

test(
  'what we find ourselves is within twice of what gpmetis finds, and even where that is not',
  withMetis,
  () => {
    for (const [tasks, count] of [
      [grid(200, 5), 2],
      [grid(200, 5), 8],
      [randomGraph(1500, 5, 1), 4],
      [randomGraph(1500, 6, 3), 8],
    ] as const) {
      const graph = tasks.graph(count)
      const shares = Array.from({ length: count }, () => 1)
      const theirs = gpmetis(graph, shares)
      assert.ok(theirs)
      const ours = partition(graph, shares)
      const factor = cutOf(graph, ours) / cutOf(graph, theirs)
      assert.ok(factor <= 2, `${factor} with ${count} parts`)
      checkEven(graph, divide(graph, shares, 'gpmetis'), shares)
      const best = cutOf(graph, divide(graph, shares))
      assert.ok(best <= cutOf(graph, ours))
    }
  },
)

test('without gpmetis the graph is divided all the same, and who asks for it is told', () => {
  const graph = grid(40, 3).graph(4)
  const shares = [1, 1, 1, 1]
  const { PATH } = process.env
  process.env['PATH'] = '/nowhere'
  try {
    assert.equal(gpmetis(graph, shares), null)
    checkEven(graph, divide(graph, shares), shares)
    assert.throws(() => divide(graph, shares, 'gpmetis'), {
      code: 'MR_OPTION',
      message: /Debian package metis/,
    })
  } finally {
    process.env['PATH'] = PATH
  }
})

test('a part goes to the node that has its inputs, among nodes of equal size', () => {
  const nodes = [
    { node: 3, share: 8 },
    { node: 5, share: 8 },
    { node: 7, share: 16 },
  ]
  assert.deepEqual(
    assignParts(nodes, [
      [0, 5, 100],
      [1, 5, 60],
      [1, 7, 900],
      [2, 3, 900],
    ]),
    [5, 3, 7],
  )
  assert.deepEqual(assignParts(nodes, []), [3, 5, 7])
})
