import assert from 'node:assert/strict'
import { test } from 'node:test'
import { POLICIES, fifo, fifoData, findPolicy, lifo } from '../../src/core/schedule/policy.ts'
import type { Policy, Situation } from '../../src/core/schedule/policy.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { lost } from '../../src/core/why.ts'
import { Rig, cpus, fails } from './rig.ts'

/** Names of tasks in the order in which one lane runs them. */
const order = (policy: Policy, submit: (rig: Rig) => void): string[] => {
  const rig = new Rig({ cpus: 1, policy })
  submit(rig)
  const ended = rig.drain()
  rig.assertIdle()
  return ended
}

const abc = (rig: Rig): void => void ['a', 'b', 'c'].map(name => rig.call(name))
const byName: Policy = { name: 'by-name', score: task => task.kind.name.charCodeAt(0) }

const ORDERS: [Policy, string[]][] = [
  [fifo, ['a', 'b', 'c']],
  [lifo, ['c', 'b', 'a']],
  [fifoData, ['a', 'b', 'c']],
  [byName, ['c', 'b', 'a']],
]
for (const [policy, expected] of ORDERS) {
  test(`given three ready tasks and policy ${policy.name}, we should run ${expected.join(', ')}`, () => {
    assert.deepEqual(order(policy, abc), expected)
  })
}

for (const policy of [...POLICIES, byName]) {
  test(`given policy ${policy.name}, priority should come first`, () => {
    const ended = order(policy, rig => {
      abc(rig)
      rig.call('high', [], { priority: 2 })
      rig.call('higher', [], { priority: 3 })
    })
    assert.deepEqual(ended.slice(0, 2), ['higher', 'high'])
  })

  test(`given policy ${policy.name}, a ready task of higher priority should go before a successor`, () => {
    const rig = new Rig({ cpus: 1, policy })
    const x = rig.datum()
    rig.call('a', [[x, 'out']], { priority: 9 })
    rig.call('successor', [[x, 'in']])
    const [a] = rig.go()
    rig.call('urgent', [], { priority: 1 })
    rig.finish(a as Task)
    assert.deepEqual(rig.names(), ['urgent'])
  })
}

test('given fifo-data, successors of the task that just ended should go first on its lane', () => {
  const rig = new Rig({ cpus: 2, policy: fifoData })
  const [x, y] = [rig.datum(), rig.datum()]
  const a = rig.call('a', [[x, 'out']])
  const b = rig.call('b', [[y, 'out']])
  for (let i = 0; i < 3; i++) rig.call('other')
  const afterA = rig.call('afterA', [[x, 'in']])
  const afterB = rig.call('afterB', [[y, 'in']])
  rig.go()
  rig.finish(b)
  assert.deepEqual(rig.go(), [afterB])
  assert.equal(afterB.lane, b.lane)
  rig.finish(a)
  assert.deepEqual(rig.go(), [afterA])
  assert.equal(afterA.lane, a.lane)
  rig.finish(afterA)
  rig.finish(afterB)
  assert.deepEqual(rig.drain(), ['other', 'other', 'other'])
})

test('given fifo-data and several successors, the one of highest priority should go first, then the oldest', () => {
  const rig = new Rig({ cpus: 1, policy: fifoData })
  const x = rig.datum()
  const a = rig.call('a', [[x, 'out']])
  rig.call('other')
  rig.call('first', [[x, 'in']])
  rig.call('best', [[x, 'in']], { priority: 1 })
  rig.go()
  rig.finish(a)
  assert.deepEqual(rig.names(), ['best'])
})

test('given fifo-data, only the task that ended last should count: then it is first in, first out again', () => {
  const rig = new Rig({ cpus: 1, policy: fifoData })
  const x = rig.datum()
  const a = rig.call('a', [[x, 'out']])
  rig.call('old')
  rig.call('b', [[x, 'in']])
  rig.call('c', [[x, 'in']])
  rig.go()
  rig.finish(a)
  assert.deepEqual(rig.drain(), ['b', 'old', 'c'])
})

test('given fifo-data and a successor that went first and fails, we should run it once per attempt', () => {
  const rig = new Rig({ cpus: 1, policy: fifoData })
  const x = rig.datum()
  const a = rig.call('a', [[x, 'out']])
  rig.call('other')
  const successor = rig.call('successor', [[x, 'in']], { retries: 3 })
  rig.go()
  rig.finish(a)
  for (let attempt = 1; attempt <= 3; attempt++) {
    let started = rig.go()
    while (started[0] !== successor) {
      rig.finish(started[0] as Task)
      started = rig.go()
    }
    assert.deepEqual(started, [successor])
    rig.fail(successor)
  }
  rig.drain()
  assert.equal(successor.state, 'done')
  rig.assertIdle()
})

test('given fifo-data, a task of higher priority that does not fit should not keep successors away', () => {
  const rig = new Rig({ cpus: 2, policy: fifoData })
  const x = rig.datum()
  const a = rig.call('a', [[x, 'out']])
  rig.call('long')
  const successor = rig.call('successor', [[x, 'in']])
  rig.go()
  const wide = rig.call('wide', [], { priority: 5, demand: cpus(2) })
  rig.finish(a)
  assert.deepEqual(rig.go(), [successor])
  assert.equal(wide.bypassed, 1)
})

test('given a policy, we should ask it once per task, with the task that released it', () => {
  const asked: [string, string | null][] = []
  const situations: Situation[] = []
  const rig = new Rig({
    cpus: 1,
    policy: {
      name: 'curious',
      score(task, situation) {
        asked.push([task.kind.name, situation.releasedBy?.kind.name ?? null])
        situations.push(situation)
        return 0
      },
    },
  })
  const x = rig.datum()
  const a = rig.call('a', [[x, 'out']], { retries: 1 })
  rig.call('b', [[x, 'in']])
  rig.go()
  rig.fail(a)
  rig.drain()
  rig.call('c', [[x, 'in']])
  assert.deepEqual(asked, [
    ['a', null],
    ['b', 'a'],
    ['c', null],
  ])
  assert.deepEqual(
    situations.map(({ turn }) => turn),
    [1, 2, 3],
  )
})

const second: Policy = {
  name: 'second',
  score: () => 0,
  place: ({ kind }, { node }) => (kind.name === 'fixed' && node === 1 ? Infinity : 0),
}

test('given tasks that a policy wants on one node only, no other node should run them, also where it is idle', () => {
  const rig = new Rig({ cpus: 1, nodes: [{}, {}, {}], policy: second })
  const all = ['fixed', 'fixed', 'free', 'fixed', 'free', 'free'].map(name => rig.call(name))
  const running: Task[] = rig.go()
  assert.equal(running.length, 3)
  const order: [string, number][] = []
  for (let task = running.shift(); task; task = running.shift()) {
    order.push([task.kind.name, task.node])
    rig.finish(task)
    running.push(...rig.go())
  }
  assert.equal(order.length, all.length)
  const fixed = order.filter(([name]) => name === 'fixed')
  assert.deepEqual(fixed, [
    ['fixed', 1],
    ['fixed', 1],
    ['fixed', 1],
  ])
  rig.assertIdle()
})

const GONE: [string, (rig: Rig) => void][] = [
  ['is lost', rig => rig.engine.membership.lost(1, ++rig.now)],
  ['is paused', rig => rig.engine.membership.changed(1, true, Infinity)],
  ['is about to end', rig => rig.engine.membership.changed(1, false, 1000)],
]
for (const [what, change] of GONE) {
  test(`given tasks for one node only that ${what}, others should run them`, () => {
    const rig = new Rig({ cpus: 1, nodes: [{}, {}], policy: second })
    const [first, ...rest] = ['fixed', 'fixed', 'fixed'].map(name => rig.call(name)) as [Task, Task, Task]
    assert.deepEqual(rig.go(), [first])
    change(rig)
    assert.deepEqual(
      rig.go().map(({ node }) => node),
      [0],
    )
    // One that was there already may come back.
    rig.engine.returned(first, lost('node'), ++rig.now)
    rig.drain()
    for (const task of rest) if (task.state === 'running') rig.finish(task)
    rig.drain()
    assert.equal(rig.engine.readyCount, 0)
    for (const task of [first, ...rest]) assert.equal(task.state, 'done')
  })
}

test('given a task for one node only that is large, smaller ones should not go past it there for ever', () => {
  const policy: Policy = {
    name: 'large',
    score: () => 0,
    place: ({ kind }, { node }) => (kind.name === 'large' && node === 1 ? Infinity : 0),
  }
  const rig = new Rig({ cpus: 2, nodes: [{}, {}], policy })
  const running = ['a', 'b', 'c', 'd'].map(name => rig.call(name))
  rig.go()
  const large = rig.call('large', [], { demand: cpus(2) })
  for (let i = 0; i < 200; i++) rig.call('small')
  let ended = 0
  while (large.state !== 'running') {
    rig.finish(running.shift() as Task)
    running.push(...rig.go())
    assert(++ended < 100, 'small tasks went past it')
  }
  assert.equal(large.node, 1)
})

const NONSENSE: [string, unknown][] = [
  ['NaN', NaN],
  ['undefined', undefined],
  ['a string', '3'],
  ['null', null],
]
for (const [what, score] of NONSENSE) {
  test(`given a policy that returns ${what}, we should name it`, () => {
    const rig = new Rig({ policy: { name: 'odd', score: () => score as number } })
    assert.throws(() => rig.call('task'), fails('MR_POLICY', `policy 'odd' gave ${String(score)}`, 'task#1'))
  })
}

test('given a policy that throws, we should name it and keep the cause', () => {
  const cause = new Error('oops')
  const rig = new Rig({
    policy: {
      name: 'odd',
      score() {
        throw cause
      },
    },
  })
  assert.throws(
    () => rig.call('task'),
    (error: Error) =>
      fails('MR_POLICY', "policy 'odd' threw for task#1: Error: oops")(error) && error.cause === cause,
  )
})

test('given a policy that fails for one task, the run should be able to go on or to end in order', () => {
  let times = 0
  const rig = new Rig({ cpus: 1, policy: { name: 'odd', score: () => (++times === 2 ? NaN : 1) } })
  const x = rig.datum()
  const maker = rig.call('maker', [[x, 'out']])
  const readers = ['a', 'b', 'c'].map(name => rig.call(name, [[x, 'in']]))
  rig.go()
  assert.throws(() => rig.finish(maker), fails('MR_POLICY', "policy 'odd' gave NaN"))
  assert.equal(maker.state, 'done')
  assert.deepEqual(
    readers.map(({ state }) => state),
    ['ready', 'ready', 'ready'],
  )
  assert.deepEqual(rig.drain(), ['b', 'c', 'a'])
  rig.assertIdle()
})

test('given the name of a policy, we should find it, or suggest the nearest', () => {
  assert.equal(findPolicy('FIFO'), fifo)
  assert.equal(findPolicy('fifo-data'), fifoData)
  assert.throws(() => findPolicy('lifi'), fails('MR_POLICY', "no policy called 'lifi'; did you mean lifo\\?"))
  assert.throws(() => findPolicy('something else'), fails('MR_POLICY', 'fifo, lifo, fifo-data'))
})
