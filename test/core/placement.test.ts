import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LANE_DEPTH } from '../../src/core/schedule/machine.ts'
import { fifoData } from '../../src/core/schedule/policy.ts'
import type { Implementation, Kind, Task } from '../../src/core/tasks/task.ts'
import type { Demand } from '../../src/core/tasks/demand.ts'
import { demandOf, roundMemory } from '../../src/core/tasks/demand.ts'
import { lost } from '../../src/core/why.ts'
import { Rig, cpus, fails, kindOf } from './rig.ts'

test('given tasks of several CPUs, we should never hold more than the node has', () => {
  const rig = new Rig({ cpus: 4 })
  for (const n of [3, 2, 1, 2]) rig.call(`of${n}`, [], { demand: cpus(n) })
  const running = rig.go()
  assert.deepEqual(
    running.map(task => task.kind.name),
    ['of3', 'of1'],
  )
  assert.equal(rig.engine.nodes[0]?.freeLanes, 0)
  rig.finish(running[0] as Task)
  assert.deepEqual(rig.names(), ['of2'])
  rig.finish(running[1] as Task)
  assert.deepEqual(rig.names(), ['of2'])
})

test('given tasks that ask for memory, we should start no more than fit', () => {
  const rig = new Rig({ cpus: 4, memory: 100 })
  for (const memory of [60, 60, 40]) rig.call(`of${memory}`, [], { demand: cpus(1, memory) })
  assert.deepEqual(rig.names(), ['of60', 'of40'])
})

test('given tags, we should run a task only where they all are', () => {
  const rig = new Rig({ cpus: 1, nodes: [{}, { tags: ['gpu'] }, { tags: ['gpu', 'avx'] }] })
  const both = rig.call('both', [], { demand: cpus(1, 0, 'gpu', 'avx') })
  const one = rig.call('one', [], { demand: cpus(1, 0, 'gpu') })
  const more = rig.call('more', [], { demand: cpus(1, 0, 'gpu') })
  rig.go()
  assert.deepEqual([both.node, one.node, more.state], [2, 1, 'ready'])
})

const IMPOSSIBLE: { nodes: object[]; demand: [number, number, string[]]; texts: RegExp[] }[] = [
  { nodes: [{ cpus: 2 }], demand: [64, 0, []], texts: [/64 CPUs/, /largest node has 2\b/] },
  { nodes: [{ cpus: 1 }, { cpus: 3 }], demand: [4, 0, []], texts: [/4 CPUs/, /largest node has 3\b/] },
  { nodes: [{ memory: 1000 }], demand: [1, 1001, []], texts: [/1001 bytes/, /largest node has 1000\b/] },
  { nodes: [{ tags: ['avx'] }], demand: [1, 0, ['gpu']], texts: [/tags \[gpu\]/, /no node/] },
  {
    nodes: [
      { cpus: 4, tags: [] },
      { cpus: 1, tags: ['gpu'] },
    ],
    demand: [2, 0, ['gpu']],
    texts: [/tags \[gpu\]/, /2 CPUs/],
  },
  {
    nodes: [
      { cpus: 4, memory: 10 },
      { cpus: 1, memory: 100 },
    ],
    demand: [2, 50, []],
    texts: [/2 CPUs and 50 bytes of memory, but no node has both/],
  },
]
for (const { nodes, demand, texts } of IMPOSSIBLE) {
  test(`given ${JSON.stringify(demand)} on ${JSON.stringify(nodes)}, we should refuse with both numbers`, () => {
    const rig = new Rig({ nodes })
    assert.throws(
      () => rig.call('huge', [], { demand: demandOf(...demand) }),
      fails('MR_CONSTRAINT', /task huge asks for/, ...texts),
    )
    assert.equal(rig.engine.root.live, 0)
    assert.deepEqual(rig.events, [])
  })
}

test('given an impossible demand but a version of the task that fits, we should use that one', () => {
  const rig = new Rig({ cpus: 2 })
  const kind = kindOf('any', [null, cpus(2)])
  const task = rig.call('any', [], { kind, demand: cpus(64) })
  assert.deepEqual(rig.go(), [task])
  assert.equal(task.implementation, kind.implementations[1])
})

test('given a version with a GPU that is much faster, tasks wait for it as long as that ends earlier', () => {
  const rig = new Rig({ nodes: [{ cpus: 3, gpus: ['0'] }] })
  const kind = kindOf('blur', [null, demandOf(1, 0, [], false, null, 1)])
  const [slow, fast] = kind.implementations as [Implementation, Implementation]
  for (const [one, took] of [
    [slow, 100],
    [fast, 20],
  ] as const) {
    one.begun = 1
    one.record(took)
  }
  const call = (): Task => rig.call('blur', [], { kind })
  const [first] = [call(), call()]
  // The second one would take 100 without the GPU, and ends after 40 with it.
  assert.deepEqual(rig.go(), [first])
  assert.equal(first?.implementation, fast)
  for (let i = 0; i < 9; i++) call()
  // The GPU would need 200 for all of them: some run without it.
  const others = rig.go()
  assert.equal(others.length, 2)
  for (const task of others) assert.equal(task.implementation, slow)
  // A GPU whose task waits for others may be held for long.
  const held = new Rig({ nodes: [{ cpus: 3, gpus: ['0'] }] })
  const [holder] = [held.call('blur', [], { kind }), held.call('blur', [], { kind })] as [Task, Task]
  assert.deepEqual(held.go(), [holder])
  held.engine.started(holder, held.now)
  held.engine.blocked(holder, 'it waits', held.now)
  assert.equal(held.go().length, 1)
})

test('given a task for several nodes, it has all its CPUs at once, and gives them back', () => {
  const spread = (n: number, perNode: number, unit = 1): Demand =>
    demandOf(n, 0, [], false, null, 0, { unit, perNode })
  const rig = new Rig({ nodes: [1, 2, 3].map(() => ({ cpus: 3, sharesRanks: true })) })
  const { nodes } = rig.engine
  const free = (): number[] => nodes.map(node => node.freeLanes)
  const small = rig.call('small')
  rig.go()
  const wide = rig.call('wide', [], { demand: spread(7, 100) })
  assert.deepEqual(rig.go(), [wide])
  // Filled one by one.
  assert.equal(
    free().reduce((a, b) => a + b),
    1,
  )
  rig.finish(wide)
  const even = rig.call('even', [], { demand: spread(6, 2) })
  assert.deepEqual(rig.go(), [even])
  assert.deepEqual(free(), [0, 1, 1])
  // Ranks of two CPUs are whole on a node: two of them do not fit into what is left.
  const pairs = rig.call('pairs', [], { demand: spread(4, 100, 2) })
  assert.deepEqual(rig.go(), [])
  rig.finish(small)
  rig.finish(even)
  assert.deepEqual(rig.go(), [pairs])
  assert.deepEqual(free(), [1, 1, 3])
  rig.finish(pairs)
  rig.go()
  rig.assertIdle()
  for (const [n, perNode] of [
    [10, 100],
    [7, 2],
  ] as const) {
    assert.throws(
      () => rig.call('huge', [], { demand: spread(n, perNode) }),
      fails('MR_CONSTRAINT', /ranks can be spread have 3 \+ 3 \+ 3/),
    )
  }
})

test('given small tasks without end, one for several nodes comes to its turn', () => {
  const rig = new Rig({ nodes: [1, 2].map(() => ({ cpus: 2, sharesRanks: true })) })
  const running: Task[] = []
  const more = (): void => {
    for (let i = 0; i < 3; i++) rig.call('small')
    running.push(...rig.go())
  }
  more()
  const wide = rig.call('wide', [], { demand: demandOf(4, 0, [], false, null, 0, { unit: 1, perNode: 2 }) })
  let isBegun = false
  for (let i = 0; i < 200 && !isBegun; i++) {
    more()
    isBegun = running.includes(wide)
    if (!isBegun) rig.finish(running.shift() as Task)
  }
  assert.ok(isBegun)
})

test('given shares of CPUs, as many run beside each other as fit into whole ones', () => {
  const rig = new Rig({ cpus: 2 })
  const [node] = rig.engine.nodes
  for (let i = 0; i < 7; i++) rig.call('third', [], { demand: cpus(1 / 3) })
  const thirds = rig.go()
  assert.equal(thirds.length, 6)
  assert.deepEqual(
    node?.lanes.map(lane => lane.shared),
    [999, 999],
  )
  rig.call('whole')
  // Until the last of them has gone, the CPU is not for a task that wants it for itself.
  const last = thirds.filter(task => task.lane === 1)
  for (const task of last.slice(0, 2)) rig.finish(task, 1)
  assert.deepEqual(
    rig.go().map(task => task.kind.name),
    ['third'],
  )
  assert.equal(node?.freeLanes, 0)
})

test('given a task that needs all CPUs, small ones should pass it only so often', () => {
  const rig = new Rig({ cpus: 2 })
  const started: string[] = []
  const running: Task[] = []
  const go = (): void => {
    for (const task of rig.go()) {
      running.push(task)
      started.push(task.kind.name)
    }
  }
  rig.call('small')
  go()
  rig.call('large', [], { demand: cpus(2) })
  for (let i = 0; i < 200 && !started.includes('large'); i++) {
    rig.call('small')
    rig.call('small')
    go()
    rig.finish(running.shift() as Task, 10)
    go()
  }
  assert(started.includes('large'), 'the large task was starved')
  assert(started.length < 30, `${started.length} small tasks passed it`)
})

test('given successors that go first on their lane, a large task should not be starved by them either', () => {
  const rig = new Rig({ cpus: 2, policy: fifoData })
  const [x, y] = [rig.datum(), rig.datum()]
  const link = (): void => {
    rig.call('x', [[x, 'inout']])
    rig.call('y', [[y, 'inout']])
  }
  link()
  const running = rig.go()
  rig.call('large', [], { demand: cpus(2) })
  let small = 0
  for (let i = 0; i < 200; i++) {
    link()
    const task = running.shift() as Task
    if (task.kind.name === 'large') break
    small++
    rig.finish(task, 10)
    running.push(...rig.go())
  }
  assert(small < 60, `${small} small tasks ran before the large one`)
})

test('given a task that waits for one node, we should not keep others from nodes where it cannot run', () => {
  const rig = new Rig({ cpus: 1, nodes: [{ tags: ['gpu'] }, {}] })
  const first = rig.call('gpu', [], { demand: cpus(1, 0, 'gpu') })
  const waits = rig.call('waits', [], { demand: cpus(1, 0, 'gpu') })
  assert.deepEqual(rig.go(), [first])
  for (let i = 0; i < 100; i++) {
    const other = rig.call('other')
    assert.deepEqual(rig.go(), [other], `after ${i} tasks on the other node`)
    rig.finish(other)
  }
  rig.finish(first)
  assert.deepEqual(rig.go(), [waits])
})

test('given several versions of a task, we should try each, then take the fastest', () => {
  const rig = new Rig({ cpus: 1 })
  const kind = kindOf('many', [null, cpus(1, 1), cpus(1, 2)])
  const speeds = new Map(kind.implementations.map((one, i) => [one, [30, 10, 20][i] as number]))
  const used: string[] = []
  for (let i = 0; i < 6; i++) {
    const task = rig.call('many', [], { kind })
    rig.go()
    used.push(task.implementation.name)
    rig.finish(task, speeds.get(task.implementation))
  }
  assert.deepEqual(used, ['many0', 'many1', 'many2', 'many1', 'many1', 'many1'])
  assert(rig.events.some(event => event.type === 'started' && event.implementation === 'many2'))
})

test('given a faster version that fits on another node, we should take it rather than a slower one here', () => {
  const rig = new Rig({ cpus: 1, nodes: [{}, { tags: ['gpu'] }] })
  const kind = kindOf('many', [cpus(1, 1), cpus(1, 0, 'gpu')])
  const [slow, fast] = kind.implementations
  slow?.record(100)
  fast?.record(1)
  for (const one of kind.implementations) one.begun = 1
  const task = rig.call('many', [], { kind })
  rig.go()
  assert.equal(task.implementation, fast)
  assert.equal(task.node, 1)
})

test('given a version that fits only on another node, we should try it while the first node is free', () => {
  const rig = new Rig({ cpus: 1, nodes: [{}, { tags: ['gpu'] }] })
  const kind = kindOf('many', [null, cpus(1, 0, 'gpu')])
  const used = [1, 2].map(() => {
    const task = rig.call('many', [], { kind })
    rig.go()
    rig.finish(task)
    return task.node
  })
  assert.deepEqual(used, [0, 1])
})

test('given a version that is being tried, we should not take it for the fastest', () => {
  const rig = new Rig({ cpus: 4 })
  const kind = kindOf('many', [null, cpus(1, 1)])
  const [a, b, c] = [1, 2, 3].map(() => rig.call('many', [], { kind })) as [Task, Task, Task]
  rig.go()
  assert.notEqual(a.implementation, b.implementation)
  assert.equal(c.implementation, a.implementation)
  rig.finish(a)
  const next = rig.call('many', [], { kind })
  rig.go()
  assert.equal(next.implementation, a.implementation)
})

test('given a try that was lost with its thread, we should try that version again', () => {
  const rig = new Rig({ cpus: 1 })
  const kind = kindOf('many', [null, cpus(1, 1)])
  const first = rig.call('many', [], { kind })
  rig.go()
  rig.finish(first)
  const second = rig.call('many', [], { kind })
  rig.go()
  assert.equal(second.implementation, kind.implementations[1])
  rig.engine.returned(second, lost('died'), ++rig.now)
  rig.go()
  assert.equal(second.implementation, kind.implementations[1])
})

// --- lanes ---

/** Makes tasks of this kind known to be short. */
const short = (rig: Rig, name: string): void => {
  const task = rig.call(name)
  rig.go()
  rig.finish(task, 0.01)
}

test('given tasks known to be short, we should queue them behind each other, but not without end', () => {
  const rig = new Rig({ cpus: 1 })
  short(rig, 'quick')
  const tasks = Array.from({ length: 500 }, () => rig.call('quick'))
  const sent = rig.go()
  assert(sent.length > 10 && sent.length <= LANE_DEPTH, String(sent.length))
  assert.deepEqual(sent, tasks.slice(0, sent.length), 'in order')
  assert.equal(rig.engine.nodes[0]?.freeLanes, 0)
  for (const task of sent) rig.finish(task, 0.01)
  assert.equal(rig.drain(0.01).length, 500 - sent.length)
  rig.assertIdle()
})

test('given functions that take next to no time, we should wake no second lane for a handful, and one for more', () => {
  const rig = new Rig({ cpus: 2 })
  const first = rig.call('tiny')
  rig.go()
  rig.finish(first, 0.001)
  const lanes = (count: number): Set<number> => {
    for (let i = 0; i < count; i++) rig.call('tiny')
    const sent = rig.go()
    const used = new Set(sent.map(task => task.lane))
    for (const task of sent) rig.finish(task, 0.001)
    return used
  }
  assert.equal(lanes(100).size, 1)
  assert.equal(lanes(500).size, 2)
  rig.drain(0.001)
  rig.assertIdle()
})

test('given functions that are short, but not that short, we should give each lane some of them', () => {
  const rig = new Rig({ cpus: 2 })
  short(rig, 'quick')
  rig.call('quick')
  rig.call('quick')
  assert.deepEqual(new Set(rig.go().map(task => task.lane)), new Set([0, 1]))
})

test('given functions of some milliseconds, we should queue a few on each lane, and one at most when few are left', () => {
  const rig = new Rig({ cpus: 2 })
  const first = rig.call('brief')
  rig.go()
  rig.finish(first, 5)
  for (let i = 0; i < 60; i++) rig.call('brief')
  const load = (): number[] => rig.engine.nodes[0]?.lanes.map(lane => lane.queue.size) ?? []
  let running = rig.go()
  assert.deepEqual(load(), [6, 6], '30 ms of them')
  let left = 60 - running.length
  while (running.length > 0) {
    rig.finish(running[0] as Task, 5)
    const sent = rig.go()
    left -= sent.length
    running = [...running.slice(1), ...sent]
    const fewest = Math.min(...load())
    for (const size of load()) assert(size - fewest <= 1 + left / 4 + 1, `${load().join()} with ${left} left`)
  }
  rig.assertIdle()
})

const NOT_QUEUED: Record<string, (rig: Rig) => Task> = {
  'whose time is not known': rig => rig.call('unknown'),
  'known to be long': rig => {
    const long = rig.call('long')
    rig.go()
    rig.finish(long, 50)
    return rig.call('long')
  },
  'that ask for memory': rig => rig.call('quick', [], { demand: cpus(1, 1) }),
  'that ask for two CPUs': rig => rig.call('quick', [], { demand: cpus(2) }),
  'with a timeout': rig => rig.call('quick', [], { timed: true }),
  'that need a COMMUTATIVE datum': rig => rig.call('quick', [[rig.datum(), 'commutative']]),
}
for (const [which, make] of Object.entries(NOT_QUEUED)) {
  test(`given tasks ${which}, we should not queue them behind another`, () => {
    const rig = new Rig({ cpus: 2 })
    short(rig, 'quick')
    const task = make(rig)
    const heads = [rig.call('quick', [], { priority: 1 }), rig.call('quick', [], { priority: 1 })]
    assert.deepEqual(rig.go(), heads)
    assert.equal(task.state, 'ready')
    assert.deepEqual(rig.go(), [])
    for (const head of heads) rig.finish(head, 0.01)
    assert.deepEqual(rig.go(), [task])
  })
}

test('given short commands, we should queue those that can wait behind other commands, and never behind a function', () => {
  const rig = new Rig({ cpus: 2 })
  const kind: Kind = { ...kindOf('true'), form: 'command' }
  const known = rig.call('true', [], { kind, queues: true })
  rig.go()
  rig.finish(known, 1)
  short(rig, 'quick')
  const [quick, first] = [rig.call('quick'), rig.call('true', [], { queues: true })]
  const more = Array.from({ length: 60 }, () => rig.call('true', [], { queues: true }))
  const alone = rig.call('true')
  const sent = rig.go()
  assert.deepEqual(sent.slice(0, 2), [quick, first])
  assert(sent.length > 5 && sent.length < 50, String(sent.length))
  assert(sent.slice(1).every(({ lane }) => lane === first.lane && lane !== quick.lane))
  assert.equal(alone.state, 'ready')
  rig.finish(quick, 0.01)
  for (const task of sent.slice(1)) rig.finish(task, 1)
  assert.equal(rig.drain(1).length, 1 + more.length + 1 - (sent.length - 1))
  rig.assertIdle()
})

test('given a lane whose task turned out to be long, we should queue nothing behind it until it has ended', () => {
  const rig = new Rig({ cpus: 1 })
  short(rig, 'quick')
  const [long, next] = [rig.call('quick'), rig.call('quick')]
  assert.deepEqual(rig.go(), [long, next])
  const [lane] = rig.engine.nodes[0]?.lanes ?? []
  assert(lane)
  lane.long = long
  rig.engine.returned(next, lost('because'), ++rig.now)
  assert.deepEqual(rig.go(), [])
  rig.finish(long, 0.01)
  assert.deepEqual(rig.go(), [next])
})

test('given a queued task that is cancelled, we should take it out of the middle of its lane', () => {
  const rig = new Rig({ cpus: 1 })
  short(rig, 'quick')
  const [a, b, c] = [1, 2, 3].map(() => rig.call('quick')) as [Task, Task, Task]
  rig.go()
  rig.engine.cancelTask(b, null, { kind: 'unread' }, ++rig.now)
  rig.engine.stopped(b, ++rig.now)
  const [lane] = rig.engine.nodes[0]?.lanes ?? []
  assert.deepEqual([...(lane?.queue ?? [])], [a, c])
  assert.equal(lane?.load.toFixed(6), (a.charge + c.charge).toFixed(6))
  rig.finish(a, 0.01)
  rig.finish(c, 0.01)
  rig.assertIdle()
})

test('given a task that turned out long, we should stop queueing its kind', () => {
  const rig = new Rig({ cpus: 1 })
  short(rig, 'quick')
  const surprise = rig.call('quick')
  rig.go()
  rig.finish(surprise, 100)
  rig.call('quick')
  rig.call('quick')
  assert.equal(rig.go().length, 1)
})

// --- blocked tasks ---

test('given a task that waits for what it called, we should give its lane to others, and then back to it', () => {
  const rig = new Rig({ cpus: 1, memory: 10 })
  const caller = rig.call('caller', [], { demand: cpus(1, 10) })
  rig.go()
  const child = rig.call('child', [], { parent: caller, demand: cpus(1, 10) })
  assert.deepEqual(rig.go(), [])
  rig.engine.blocked(caller, 'child', ++rig.now)
  assert.deepEqual(rig.go(), [child])
  rig.engine.unblocked(caller)
  assert.deepEqual(rig.go(), [], 'the lane is in use')
  rig.finish(child)
  const late = rig.call('late')
  assert.deepEqual(rig.go(), [caller], 'it has the older claim')
  rig.finish(caller)
  assert.deepEqual(rig.go(), [late])
  rig.finish(late)
  rig.assertIdle()
  assert.deepEqual(rig.story(caller), ['submitted', 'ready', 'started', 'blocked', 'resumed', 'finished'])
})

test('given a blocked task that is told twice that it can go on, we should let it go on once', () => {
  const rig = new Rig({ cpus: 1 })
  const caller = rig.call('caller')
  rig.go()
  rig.engine.blocked(caller, 'child', ++rig.now)
  rig.engine.unblocked(caller)
  rig.engine.unblocked(caller)
  assert.deepEqual(rig.go(), [caller])
  assert.deepEqual(rig.go(), [])
  rig.finish(caller)
  rig.assertIdle()
})

test('given a blocked task that went on, we should count its load, so that short tasks do not pile up behind it', () => {
  const rig = new Rig({ cpus: 1 })
  const caller = rig.call('caller')
  rig.go()
  rig.engine.blocked(caller, 'child', ++rig.now)
  short(rig, 'quick')
  rig.engine.unblocked(caller)
  assert.deepEqual(rig.go(), [caller])
  rig.call('quick')
  assert.deepEqual(rig.go(), [], 'it is not known how long the caller takes')
  rig.finish(caller, 0.1)
  assert.equal(rig.go().length, 1)
})

test('given a blocked task that could go on, we should queue nothing more on its lane', () => {
  const rig = new Rig({ cpus: 1 })
  const caller = rig.call('caller')
  rig.go()
  rig.engine.blocked(caller, 'child', ++rig.now)
  short(rig, 'quick')
  const running = rig.call('quick')
  assert.deepEqual(rig.go(), [running])
  rig.engine.unblocked(caller)
  const later = rig.call('quick')
  assert.deepEqual(rig.go(), [])
  rig.finish(running, 0.01)
  assert.deepEqual(rig.go(), [caller])
  rig.finish(caller, 0.01)
  assert.deepEqual(rig.go(), [later])
})

const ENDS: Record<string, (rig: Rig, task: Task) => void> = {
  'is finished': (rig, task) => rig.finish(task),
  fails: (rig, task) => void rig.fail(task),
  'is returned': (rig, task) => rig.engine.returned(task, lost('died'), ++rig.now),
  'is cancelled and stopped': (rig, task) => {
    rig.engine.cancelTask(task, null, { kind: 'unread' }, ++rig.now)
    assert.equal(task.state, 'stopping')
    rig.engine.stopped(task, ++rig.now)
  },
}
for (const [end, happen] of Object.entries(ENDS)) {
  for (const claimed of [false, true]) {
    const when = claimed ? 'could go on' : 'still waits'
    test(`given a blocked task that ${when}, when it ${end} we should have everything back`, () => {
      const rig = new Rig({ cpus: 2, memory: 10 })
      const caller = rig.call('caller', [], { demand: cpus(2, 10) })
      rig.go()
      rig.engine.blocked(caller, 'child', ++rig.now)
      const others = [rig.call('other'), rig.call('other')]
      assert.deepEqual(rig.go(), others)
      if (claimed) rig.engine.unblocked(caller)
      happen(rig, caller)
      for (const other of others) rig.finish(other)
      rig.drain()
      rig.assertIdle()
    })
  }
}

test('given a blocked task of three CPUs that could go on, new tasks should not take two of them for ever', () => {
  const rig = new Rig({ cpus: 3 })
  const caller = rig.call('caller', [], { demand: cpus(3) })
  rig.go()
  rig.engine.blocked(caller, 'child', ++rig.now)
  const others = [1, 2, 3].map(() => rig.call('other'))
  assert.deepEqual(rig.go(), others)
  rig.engine.unblocked(caller)
  for (let i = 0; i < 3; i++) rig.call('other')
  rig.finish(others.find(({ lane }) => lane === caller.lane) as Task)
  assert.deepEqual(rig.go(), [])
  const rest = others.filter(({ state }) => state === 'running')
  rig.finish(rest[0] as Task)
  assert.deepEqual(rig.go(), [], 'the second CPU is kept for it')
  rig.finish(rest[1] as Task)
  assert.deepEqual(rig.go(), [caller])
})

test('given a blocked task of two CPUs that could go on, short tasks should not keep the others busy', () => {
  const rig = new Rig({ cpus: 2 })
  const caller = rig.call('caller', [], { demand: cpus(2) })
  rig.go()
  rig.engine.blocked(caller, 'child', ++rig.now)
  short(rig, 'quick')
  const running = [rig.call('quick'), rig.call('quick')]
  assert.deepEqual(rig.go(), running)
  rig.engine.unblocked(caller)
  rig.finish(running.find(({ lane }) => lane === caller.lane) as Task, 0.01)
  rig.call('quick')
  assert.deepEqual(rig.go(), [], 'not even behind the one that runs')
})

test('given a blocked task that waits for memory, new tasks should take neither that nor its lane', () => {
  const rig = new Rig({ cpus: 5, memory: 10 })
  const caller = rig.call('caller', [], { demand: cpus(1, 10) })
  rig.go()
  rig.engine.blocked(caller, 'child', ++rig.now)
  const [a, b] = [
    rig.call('first', [], { demand: cpus(1, 5) }),
    rig.call('second', [], { demand: cpus(1, 5) }),
  ]
  assert.deepEqual(rig.go(), [a, b])
  rig.engine.unblocked(caller)
  rig.finish(a)
  const pair = rig.call('pair', [], { demand: cpus(2) })
  const hungry = rig.call('hungry', [], { demand: cpus(1, 5) })
  assert.deepEqual(rig.go(), [pair])
  assert.equal(rig.engine.nodes[0]?.lanes[caller.lane]?.lentTo, null)
  rig.finish(b)
  assert.deepEqual(rig.go(), [caller])
  rig.finish(caller)
  assert.deepEqual(rig.go(), [hungry])
  rig.finish(pair)
  rig.finish(hungry)
  rig.assertIdle()
})

test('given a rounded amount of memory, it should be at most 7% more and never less', () => {
  for (let bytes = 1; bytes < 1e15; bytes = Math.ceil(bytes * 1.37)) {
    const rounded = roundMemory(bytes)
    assert(rounded >= bytes && rounded <= bytes * 1.07 && Number.isInteger(rounded), `${bytes}: ${rounded}`)
  }
  const values = new Set<number>()
  for (let i = 0; i < 5000; i++) values.add(roundMemory(2 ** 30 + (i * 2 ** 30) / 5000))
  assert(values.size <= 17)
})

/** A kind that has run before, and takes so many milliseconds. */
const known = (name: string, took: number): Kind => {
  const kind = kindOf(name)
  for (const one of kind.implementations) one.record(took)
  return kind
}

test('given a large task that waits, only what is known to end before it can start should go first', () => {
  const rig = new Rig({ cpus: 2 })
  const kinds = { long: known('long', 1000), brief: known('brief', 20), new: kindOf('new') }
  const call = (name: keyof typeof kinds): Task => rig.call(name, [], { kind: kinds[name], priority: -1 })
  const long = call('long')
  assert.deepEqual(rig.names(), ['long'])
  const began = rig.now
  const large = rig.call('large', [], { demand: cpus(2) })
  // Overtaken as often as it may be.
  for (let i = 0; i < 16; i++) {
    call('long')
    const [task] = rig.go()
    assert.equal(task?.kind.name, 'long')
    rig.engine.started(task as Task, rig.now)
    rig.engine.finished(task as Task, ++rig.now, 1000)
  }
  const others = (['long', 'new'] as const).map(call)
  assert.deepEqual(rig.go(), [], 'they may take longer than the one that runs')
  let early = 0
  for (; rig.now < began + 1500; early++) {
    const one = call('brief')
    const going = rig.go()
    if (going.length === 0) break
    assert.deepEqual(going, [one])
    assert(rig.now + 20 <= began + 1001, 'it would end after the large task can start')
    rig.now += 20
    rig.engine.finished(one, rig.now, 20)
  }
  assert(early > 10, `only ${early} tasks used the CPU meanwhile`)
  // The one that runs takes longer than expected: nothing more goes first.
  rig.now += 5000
  assert.deepEqual(rig.go(), [])
  rig.engine.finished(long, ++rig.now, 6000)
  assert.deepEqual(rig.go(), [large])
  assert.deepEqual(
    others.map(task => task.state),
    ['ready', 'ready'],
  )
})

test('given a large task whose predecessors take ever longer than expected, it is not put off again and again', () => {
  const rig = new Rig({ cpus: 2 })
  const kind = known('small', 10)
  const running: Task[] = []
  const go = (): string[] => {
    const going = rig.go()
    running.push(...going)
    return going.map(task => task.kind.name)
  }
  rig.call('small', [], { kind })
  go()
  rig.call('large', [], { demand: cpus(2) })
  let small = 0
  for (let i = 0; i < 300; i++) {
    rig.call('small', [], { kind })
    rig.call('small', [], { kind })
    if (go().includes('large')) break
    const [task] = running.splice(0, 1) as [Task]
    rig.now += 100
    rig.finish(task, 100)
    small++
    if (go().includes('large')) break
  }
  assert(
    running.some(task => task.kind.name === 'large'),
    'the large task was starved',
  )
  assert(small < 30, `${small} small tasks ran before it`)
})
