import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Datum } from '../../src/core/data/datum.ts'
import { hrf, lifoHrf, rank } from '../../src/core/schedule/policy.ts'
import type { Policy } from '../../src/core/schedule/policy.ts'
import { RankTree } from '../../src/core/schedule/rank-tree.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { Rig } from './rig.ts'

/** What the paper says, done the slow way: everything is computed anew for each choice. */
class Naive {
  readonly policy: Policy
  readonly cores: number
  readonly tasks: {
    needs: number[]
    priority: number
    state: 'waiting' | 'ready' | 'running' | 'done'
    turn: number
    fresh: number
    used: number
  }[] = []
  readonly times = new Map<number, number[]>()
  #turn = 0
  #ended = 0
  #random = 0x2545f491

  constructor(policy: Policy, cores: number) {
    this.policy = policy
    this.cores = cores
  }

  submit(needs: number[], priority: number): void {
    this.tasks.push({ needs, priority, state: 'waiting', turn: 0, fresh: 0, used: 0 })
    this.#wake()
  }

  /** One more than the highest of those that need it; 0 for the end of the graph. */
  rank(task: number): number {
    let highest = -1
    for (const [other, { needs }] of this.tasks.entries()) {
      if (needs.includes(task)) highest = Math.max(highest, this.rank(other))
    }
    return highest + 1
  }

  finish(task: number, took: number): void {
    const at = this.rank(task)
    this.times.set(at, [...(this.times.get(at) ?? []), took])
    const ended = this.tasks[task]!
    ended.state = 'done'
    this.#ended++
    for (const one of [ended, ...ended.needs.map(need => this.tasks[need]!)]) one.used = this.#ended
    this.#wake()
  }

  take(): number | null {
    const ready = [...this.tasks.keys()].filter(task => this.tasks[task]!.state === 'ready')
    if (ready.length === 0) return null
    const most = Math.max(...ready.map(task => this.tasks[task]!.priority))
    const candidates = ready.filter(task => this.tasks[task]!.priority === most)
    const ranks = candidates.map(task => this.rank(task))
    const highest = Math.max(...ranks)
    const wanted = this.#choose(ranks, highest)
    const chosen = candidates.filter((_, i) => wanted === null || ranks[i] === wanted)
    const isBefore = (a: number, b: number): boolean => {
      const [one, other] = [this.tasks[a]!, this.tasks[b]!]
      return one.fresh === other.fresh ? one.turn > other.turn : one.fresh > other.fresh
    }
    const taken = chosen.reduce((a, b) => (isBefore(a, b) ? a : b))
    this.tasks[taken]!.state = 'running'
    return taken
  }

  #choose(ranks: number[], highest: number): number | null {
    if (this.policy === hrf) return highest
    if (this.policy === lifoHrf) {
      return ranks.filter(one => one === highest).length > this.cores ? null : highest
    }
    if (ranks.length < this.cores) return highest
    const distinct = [...new Set(ranks)].sort((a, b) => a - b)
    const mean = (times: number[]): number => times.reduce((a, b) => a + b) / times.length
    const all = [...this.times.values()].flat()
    const usual = all.length === 0 ? 1 : 1 / mean(all)
    const weights = distinct.map(one => (this.times.has(one) ? 1 / mean(this.times.get(one)!) : usual))
    let left = this.#next() * weights.reduce((a, b) => a + b)
    for (const [i, weight] of weights.entries()) {
      if (left < weight) return distinct[i]!
      left -= weight
    }
    return highest
  }

  #wake(): void {
    for (const one of this.tasks) {
      if (one.state !== 'waiting' || !one.needs.every(need => this.tasks[need]!.state === 'done')) continue
      one.state = 'ready'
      one.turn = ++this.#turn
      one.fresh = one.needs.length === 0 ? 0 : Math.min(...one.needs.map(need => this.tasks[need]!.used))
    }
  }

  #next(): number {
    this.#random ^= this.#random << 13
    this.#random ^= this.#random >>> 17
    this.#random ^= this.#random << 5
    return (this.#random >>> 0) / 2 ** 32
  }
}

interface Step {
  needs: number[]
  priority: number
  /** Tasks to finish before the next is submitted. */
  ends: number
  took: number
}

const step = fc.record({
  needs: fc.array(fc.nat(), { maxLength: 3 }),
  priority: fc.constantFrom(0, 0, 0, 0, 1),
  ends: fc.constantFrom(0, 0, 0, 1, 2),
  took: fc.constantFrom(1, 1, 2, 8),
})

function play(policy: Policy, cores: number, steps: Step[], priorities: boolean): void {
  const rig = new Rig({ cpus: cores, policy })
  const naive = new Naive(policy, cores)
  const data: Datum[] = []
  const tasks: Task[] = []
  const running: Task[] = []
  const decide = (): void => {
    const started = rig.go()
    running.push(...started)
    // One at a time and not together, as the engine does it.
    for (const task of started) assert.equal(tasks.indexOf(task), naive.take())
  }
  const finish = (took: number): void => {
    const task = running.shift()
    if (!task) return
    rig.finish(task, took)
    naive.finish(tasks.indexOf(task), took)
    decide()
  }
  for (const { needs, priority, ends, took } of steps) {
    const inputs = [...new Set(needs.map(need => (tasks.length === 0 ? -1 : need % tasks.length)))].filter(
      i => i >= 0,
    )
    const datum = rig.datum()
    data.push(datum)
    const level = priorities ? priority : 0
    naive.submit(inputs, level)
    // Not short: a short task may queue behind another, and that is another matter.
    tasks.push(
      rig.call('t', [...inputs.map(i => [data[i] as Datum, 'in'] as [Datum, 'in']), [datum, 'out']], {
        priority: level,
      }),
    )
    if (ends > 0) decide()
    for (let i = 0; i < ends; i++) finish(took)
  }
  decide()
  while (running.length > 0) finish(1)
  rig.assertIdle()
  assert(naive.tasks.every(({ state }) => state === 'done'))
}

for (const policy of [hrf, lifoHrf, rank]) {
  test(`policy ${policy.name} takes the tasks that the slow way takes, in any graph that grows`, () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { maxLength: 40 }),
        fc.boolean(),
        (cores, steps, priorities) => play(policy, cores, steps, priorities && policy !== rank),
      ),
      { numRuns: 300 },
    )
  })
}

/** The paper's example: A_i, then B_i, for i in 1 to n; then C. */
function order(policy: Policy, n: number): string[] {
  const rig = new Rig({ cpus: 2, policy })
  const all: Datum[] = []
  const named: [string, Task][] = []
  for (let i = 1; i <= n; i++) {
    const [a, b] = [rig.datum(), rig.datum()]
    named.push([`A${i}`, rig.call('A', [[a, 'out']])])
    named.push([
      `B${i}`,
      rig.call('B', [
        [a, 'in'],
        [b, 'out'],
      ]),
    ])
    all.push(b)
  }
  named.push([
    'C',
    rig.call(
      'C',
      all.map(b => [b, 'in'] as [Datum, 'in']),
    ),
  ])
  const names = new Map(named.map(([name, task]) => [task, name]))
  const started: string[] = []
  for (let running = rig.go(); running.length > 0; running = rig.go()) {
    started.push(running.map(task => names.get(task)!).join(' '))
    for (const task of running) rig.finish(task)
  }
  return started
}

test("lifo+hrf runs the paper's example last in first, until those of the highest rank are as few as CPUs", () => {
  assert.deepEqual(order(lifoHrf, 6), ['A6 A5', 'B5 B6', 'A4 A3', 'A2 A1', 'B1 B2', 'B3 B4', 'C'])
  // With an odd number last in first out alone would leave one lane idle while A1 and B1 run.
  assert.deepEqual(order(lifoHrf, 5), ['A5 A4', 'B4 B5', 'A3 A2', 'A1 B2', 'B1 B3', 'C'])
})

test('hrf runs all of the highest rank before any of the next', () => {
  assert.deepEqual(order(hrf, 4), ['A4 A3', 'A2 A1', 'B1 B2', 'B3 B4', 'C'])
})

test('rank mixes ranks while there is enough to do', () => {
  const rounds = order(rank, 40)
  const mixed = rounds.filter(round => round.includes('A') && round.includes('B'))
  assert(mixed.length > 5, rounds.join(', '))
  assert.equal(rounds.at(-1), 'C')
})

test('a task whose successors are called later rises in rank', () => {
  const rig = new Rig({ cpus: 1, policy: hrf })
  const [x, y, z] = [rig.datum(), rig.datum(), rig.datum()]
  const hold = rig.call('hold')
  rig.go()
  rig.call('x', [[x, 'out']])
  rig.call('y', [[y, 'out']])
  rig.call('afterX', [
    [x, 'in'],
    [z, 'out'],
  ])
  rig.go()
  rig.call('afterY', [[y, 'in']])
  rig.call('end', [[z, 'in']])
  rig.finish(hold)
  assert.deepEqual(rig.drain(), ['x', 'afterX', 'y', 'afterY', 'end'])
})

test('counts and choices of the tree are those of a list', () => {
  const action = fc.oneof(
    fc.record({ add: fc.nat(40), count: fc.integer({ min: -2, max: 3 }) }),
    fc.record({ weigh: fc.nat(40), as: fc.constantFrom(0.25, 1, 4) }),
    fc.record({ pick: fc.double({ min: 0, max: 0.999, noNaN: true }), usual: fc.constantFrom(0.5, 2) }),
  )
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), actions => {
      const tree = new RankTree()
      const counts = new Map<number, number>()
      const weights = new Map<number, number>()
      for (const one of actions) {
        if ('add' in one) {
          const before = counts.get(one.add) ?? 0
          const count = Math.max(one.count, -before)
          tree.add(one.add, count)
          counts.set(one.add, before + count)
        } else if ('weigh' in one) {
          tree.setWeight(one.weigh, one.as)
          weights.set(one.weigh, one.as)
        } else {
          const there = [...counts]
            .filter(([, count]) => count > 0)
            .map(([at]) => at)
            .sort((a, b) => a - b)
          const weightOf = (at: number): number => weights.get(at) ?? one.usual
          let left = one.pick * there.reduce((sum, at) => sum + weightOf(at), 0)
          const expected = there.find(at => (left -= weightOf(at)) < 0) ?? -1
          assert.equal(tree.pick(one.pick, one.usual), expected)
        }
        const there = [...counts].filter(([, count]) => count > 0)
        assert.equal(
          tree.size,
          there.reduce((sum, [, count]) => sum + count, 0),
        )
        assert.equal(tree.highest, Math.max(-1, ...there.map(([at]) => at)))
        for (const [at, count] of counts) assert.equal(tree.count(at), count)
      }
    }),
  )
})
