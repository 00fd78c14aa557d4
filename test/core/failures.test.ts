import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Group } from '../../src/core/tasks/group.ts'
import type { OnFailure, Task } from '../../src/core/tasks/task.ts'
import { lost } from '../../src/core/why.ts'
import { Rig, cpus } from './rig.ts'

const AFTER: { onFailure: OnFailure; retries: number; failures: number; state: string; events: string[] }[] =
  [
    { onFailure: 'fail', retries: 0, failures: 1, state: 'failed', events: ['started', 'failed'] },
    {
      onFailure: 'fail',
      retries: 1,
      failures: 1,
      state: 'done',
      events: ['started', 'failed', 'started', 'finished'],
    },
    {
      onFailure: 'fail',
      retries: 1,
      failures: 2,
      state: 'failed',
      events: ['started', 'failed', 'started', 'failed'],
    },
    { onFailure: 'retry', retries: 0, failures: 1, state: 'failed', events: ['started', 'failed'] },
    {
      onFailure: 'retry',
      retries: 2,
      failures: 2,
      state: 'done',
      events: ['started', 'failed', 'started', 'failed', 'started', 'finished'],
    },
    { onFailure: 'ignore', retries: 0, failures: 1, state: 'ignored', events: ['started', 'failed'] },
    {
      onFailure: 'ignore',
      retries: 1,
      failures: 2,
      state: 'ignored',
      events: ['started', 'failed', 'started', 'failed'],
    },
    {
      onFailure: 'cancelSuccessors',
      retries: 0,
      failures: 1,
      state: 'failed',
      events: ['started', 'failed'],
    },
  ]
for (const { onFailure, retries, failures, state, events } of AFTER) {
  test(`given onFailure ${onFailure}, ${retries} retries and ${failures} failures, a task should end as ${state}`, () => {
    const rig = new Rig()
    const task = rig.call('task', [], { onFailure, retries })
    for (let i = 0; i < failures; i++) {
      assert.deepEqual(rig.go(), [task])
      rig.fail(task)
    }
    if (!task.ended) {
      assert.deepEqual(rig.go(), [task])
      rig.finish(task)
    }
    assert.equal(task.state, state)
    assert.deepEqual(rig.story(task), ['submitted', 'ready', ...events])
    rig.assertIdle()
  })
}

test('given an ignored failure, we should commit what the task left', () => {
  const rig = new Rig()
  const x = rig.datum()
  const bad = rig.call('bad', [[x, 'inout']], { onFailure: 'ignore' })
  rig.call('reader', [[x, 'in']])
  rig.go()
  assert.equal(rig.engine.afterFailure(bad), 'ignore')
  x.current.value = 'partial'
  rig.fail(bad)
  assert.deepEqual(rig.drain(), ['reader'])
  assert.equal(x.current.value, 'partial')
})

test('given cancelSuccessors, we should cancel what reads its outputs, directly or not, and nothing else', () => {
  const rig = new Rig()
  const [x, y, z] = [rig.datum(), rig.datum(), rig.datum()]
  const bad = rig.call('bad', [[x, 'out']], { onFailure: 'cancelSuccessors' })
  const near = rig.call('near', [
    [x, 'in'],
    [y, 'out'],
  ])
  const far = rig.call('far', [
    [y, 'in'],
    [z, 'out'],
  ])
  const other = rig.call('other', [[z, 'out']])
  rig.go()
  const error = rig.fail(bad)
  for (const task of [near, far]) {
    assert.equal(task.state, 'cancelled')
    assert.equal(task.cause, bad)
    assert.equal(task.reason, 'bad#1 failed')
    assert.deepEqual(rig.story(task), ['submitted', 'cancelled'])
  }
  assert.equal(bad.error, error)
  assert.equal(other.state, 'running')
})

interface Family {
  rig: Rig
  outer: Group
  inner: Group
  bad: Task
  running: Task
  waiting: Task
  ready: Task
  inside: Task
  outside: Task
}

/** A group with one task that is going to fail, others in all states, a group inside and a task outside. */
function family(): Family {
  const rig = new Rig({ cpus: 2 })
  const outer = rig.engine.createGroup('outer')
  const inner = rig.engine.createGroup('inner', outer)
  const x = rig.datum()
  const bad = rig.call('bad', [], { group: outer })
  const running = rig.call('running', [[x, 'out']], { group: outer })
  const waiting = rig.call('waiting', [[x, 'in']], { group: outer })
  const ready = rig.call('ready', [], { group: outer })
  const inside = rig.call('inside', [], { group: inner })
  const outside = rig.call('outside')
  assert.deepEqual(rig.names(), ['bad', 'running'])
  return { rig, outer, inner, bad, running, waiting, ready, inside, outside }
}

test('given a failure in a group, we should cancel the rest of it and of groups inside, not what runs', () => {
  const { rig, outer, inner, bad, running, waiting, ready, inside, outside } = family()
  rig.engine.watchGroup(outer)
  rig.fail(bad)
  for (const task of [waiting, ready, inside]) {
    assert.equal(task.state, 'cancelled')
    assert.equal(task.cause, bad)
    assert.equal(task.reason, 'bad#1 failed')
  }
  assert.equal(running.state, 'running')
  assert.equal(outside.state, 'ready')
  assert.equal(outer.failure, bad)
  assert.equal(inner.live, 0)
  assert.equal(outer.live, 1)
  assert.deepEqual(rig.names(), ['outside'])
  assert(!rig.said.some(({ type }) => type === 'idle'))
  rig.finish(running)
  rig.go()
  assert.deepEqual(
    rig.said.filter(({ type }) => type === 'idle'),
    [{ type: 'idle', group: outer }],
  )
})

test('given a failed group, we should cancel later calls until the failure is acknowledged', () => {
  const { rig, outer, inner, bad } = family()
  rig.fail(bad)
  for (const group of [outer, inner]) {
    const late = rig.call('late', [], { group })
    assert.equal(late.state, 'cancelled')
    assert.equal(late.cause, bad)
  }
  rig.engine.acknowledge(outer)
  for (const group of [outer, inner]) assert.equal(rig.call('again', [], { group }).state, 'ready')
})

test('given a cancelled group, we should stop what runs, cancel the rest, and refuse later calls', () => {
  const { rig, outer, running, bad, waiting, ready, inside, outside } = family()
  rig.engine.cancel(outer, { kind: 'group', group: 'outer', how: 'cancelled' }, ++rig.now)
  for (const task of [waiting, ready, inside]) assert.equal(task.state, 'cancelled')
  for (const task of [running, bad]) assert.equal(task.state, 'stopping')
  assert.deepEqual(rig.names(), [], 'their lanes are held')
  assert.deepEqual(new Set(rig.stops()), new Set([running, bad]))
  rig.engine.stopped(running, ++rig.now)
  assert.deepEqual(rig.go(), [outside])
  rig.finish(bad)
  assert.equal(bad.state, 'cancelled', 'it ended before it could be stopped')
  assert.equal(rig.call('late', [], { group: outer }).reason, 'group outer was cancelled')
  rig.finish(outside)
  rig.assertIdle()
})

test('given a running task that is cancelled, we should keep its CPUs and memory until it has stopped', () => {
  const rig = new Rig({ cpus: 2, memory: 100 })
  const big = rig.call('big', [], { demand: cpus(2, 100) })
  const next = rig.call('next')
  rig.go()
  rig.engine.cancelTask(big, null, { kind: 'unread' }, ++rig.now)
  const [node] = rig.engine.nodes
  assert.deepEqual([node?.freeLanes, node?.freeMemory], [0, 0])
  assert.deepEqual(rig.go(), [])
  rig.engine.stopped(big, ++rig.now)
  assert.deepEqual([node?.freeLanes, node?.freeMemory], [2, 100])
  assert.deepEqual(rig.go(), [next])
  assert.deepEqual(rig.story(big), ['submitted', 'ready', 'cancelled'])
})

test('given a task that ended before it was told to stop, we should not tell it', () => {
  const rig = new Rig()
  const task = rig.call('quick')
  rig.go()
  rig.engine.cancelTask(task, null, { kind: 'unread' }, ++rig.now)
  rig.engine.finished(task, ++rig.now, 1)
  assert.equal(task.state, 'cancelled')
  rig.go()
  assert.deepEqual(rig.stops(), [])
})

const LATE: Record<string, (rig: Rig, task: Task) => void> = {
  finished: (rig, task) => rig.finish(task),
  failed: (rig, task) => void rig.fail(task),
  returned: (rig, task) => rig.engine.returned(task, lost('died'), ++rig.now),
  stopped: (rig, task) => rig.engine.stopped(task, ++rig.now),
}
for (const [report, send] of Object.entries(LATE)) {
  test(`given a task that is being stopped, '${report}' should mean that it has stopped, whatever it would have done`, () => {
    const rig = new Rig()
    const x = rig.datum()
    const task = rig.call('task', [[x, 'out']], { retries: 2, onFailure: 'ignore' })
    rig.go()
    rig.engine.cancelTask(task, null, { kind: 'unread' }, ++rig.now)
    send(rig, task)
    assert.equal(task.state, 'cancelled')
    assert.equal(x.current.state, 'cancelled')
    assert.equal(rig.story(task).at(-1), 'cancelled')
    assert.deepEqual(rig.go(), [])
    rig.assertIdle()
  })
}

test('given a running task that is cancelled, we should cancel its successors at once', () => {
  const rig = new Rig()
  const x = rig.datum()
  const maker = rig.call('maker', [[x, 'out']])
  const reader = rig.call('reader', [[x, 'in']])
  rig.go()
  rig.engine.cancelTask(maker, null, { kind: 'unread' }, ++rig.now)
  assert.equal(reader.state, 'cancelled')
  assert.equal(reader.cause, maker)
  assert.equal(reader.reason, 'maker#1 was cancelled')
})

test('given the end of the run, we should cancel what has not started, let the rest end, and refuse more', () => {
  const { rig, bad, running, waiting, ready, inside, outside } = family()
  rig.engine.close('interrupt', ++rig.now)
  for (const task of [waiting, ready, inside, outside]) {
    assert.equal(task.state, 'cancelled')
    assert.equal(task.reason, 'the run was interrupted')
    assert.equal(task.cause, null)
  }
  rig.finish(bad)
  rig.finish(running)
  assert.deepEqual(rig.go(), [])
  assert.equal(rig.call('late').state, 'cancelled')
  rig.assertIdle()
})

const AGAIN: Record<string, (rig: Rig, task: Task) => void> = {
  'fails and has retries left': (rig, task) => void rig.fail(task),
  'comes back from a thread that died': (rig, task) => rig.engine.returned(task, lost('died'), ++rig.now),
}
const TROUBLE: Record<string, (rig: Rig, group: Group, bad: Task) => void> = {
  'a group that has failed': (rig, _group, bad) => void rig.fail(bad),
  'a run that is ending': rig => rig.engine.close('interrupt', ++rig.now),
}
for (const [when, happen] of Object.entries(AGAIN)) {
  for (const [where, spoil] of Object.entries(TROUBLE)) {
    test(`given a task that ${when} in ${where}, we should not start it again`, () => {
      const rig = new Rig()
      const group = rig.engine.createGroup('group')
      const bad = rig.call('bad', [], { group })
      const task = rig.call('task', [], { group, retries: 3 })
      rig.go()
      spoil(rig, group, bad)
      assert.equal(task.state, 'running')
      happen(rig, task)
      assert.equal(task.state, 'cancelled')
      assert.deepEqual(rig.go(), [])
      if (!bad.ended) rig.finish(bad)
      rig.assertIdle()
    })
  }
}

test('given a task that comes back, we should run the same attempt again', () => {
  const rig = new Rig({ cpus: 1, memory: 10 })
  const task = rig.call('task', [], { demand: cpus(1, 10), retries: 0 })
  rig.go()
  rig.engine.started(task, rig.now)
  rig.engine.returned(task, lost('its thread died'), ++rig.now)
  assert.deepEqual(rig.go(), [task])
  assert.equal(task.attempt, 1)
  rig.finish(task)
  assert.deepEqual(rig.story(task), ['submitted', 'ready', 'started', 'returned', 'started', 'finished'])
  rig.assertIdle()
})

test('given a group that is closed while members run, we should still reach them, and then let it go', () => {
  const rig = new Rig()
  const outer = rig.engine.createGroup('outer')
  const inner = rig.engine.createGroup('inner', outer)
  const task = rig.call('task', [], { group: inner })
  rig.go()
  rig.engine.closeGroup(inner)
  rig.engine.cancel(outer, { kind: 'group', group: 'outer', how: 'cancelled' }, ++rig.now)
  assert.equal(task.state, 'stopping')
  assert.equal(outer.children.size, 1)
  rig.engine.stopped(task, ++rig.now)
  assert.equal(outer.children.size, 0)
  rig.engine.closeGroup(outer)
  assert(!rig.engine.root.children.has(outer))
})

test('given a group that was empty for a while, we should still reach what it gets later', () => {
  const rig = new Rig()
  const outer = rig.engine.createGroup('outer')
  const inner = rig.engine.createGroup('inner', outer)
  rig.call('first', [], { group: inner })
  rig.drain()
  const later = rig.call('later', [], { group: inner })
  rig.engine.cancel(outer, { kind: 'group', group: 'outer', how: 'cancelled' }, ++rig.now)
  assert.equal(later.state, 'cancelled')
})

test('given a group that is cancelled, or a run that is closed, we should cancel what comes later and say which it was', () => {
  const rig = new Rig()
  const group = rig.engine.createGroup('group')
  rig.engine.cancel(group, { kind: 'group', group: 'outer', how: 'cancelled' }, ++rig.now)
  const late = rig.call('late', [], { group })
  assert.equal(late.state, 'cancelled')
  assert.equal(late.why?.kind, 'group')
  rig.engine.close('interrupt', ++rig.now)
  const later = rig.call('later')
  assert.equal(later.state, 'cancelled')
  assert.deepEqual(later.why, { kind: 'closed', by: 'interrupt' })
})

test('given a failure that is retried, a successor should see only the last attempt', () => {
  const rig = new Rig()
  const x = rig.datum()
  const flaky = rig.call('flaky', [[x, 'out']], { retries: 1 })
  const reader = rig.call('reader', [[x, 'in']])
  rig.go()
  rig.fail(flaky)
  assert.equal(reader.state, 'waiting')
  rig.go()
  rig.finish(flaky)
  assert.deepEqual(rig.go(), [reader])
})

const LENGTH = 200_000
const CHAINS: Record<string, (rig: Rig, first: Task) => void> = {
  'the first of which fails': (rig, first) => void rig.fail(first),
  'the first of which is cancelled while it runs': (rig, first) =>
    rig.engine.cancelTask(first, null, { kind: 'unread' }, ++rig.now),
  'that are cancelled as a group': rig =>
    rig.engine.cancel(rig.engine.root, { kind: 'group', group: 'outer', how: 'cancelled' }, ++rig.now),
  'when the run ends': rig => rig.engine.close('interrupt', ++rig.now),
}
for (const [how, spoil] of Object.entries(CHAINS)) {
  test(`given a chain of ${LENGTH} tasks ${how}, we should cancel them all without running out of stack`, () => {
    const rig = new Rig()
    rig.engine.observer = null
    const x = rig.datum()
    const first = rig.call('link', [[x, 'inout']], { onFailure: 'cancelSuccessors' })
    rig.go()
    let last = first
    for (let i = 1; i < LENGTH; i++) last = rig.call('link', [[x, 'inout']])
    spoil(rig, first)
    assert.equal(last.state, 'cancelled')
    rig.go()
    if (first.state === 'stopping') rig.engine.stopped(first, ++rig.now)
    if (!first.ended) rig.finish(first)
    rig.assertIdle()
  })
}

test('given a chain of closed teams that all fail, we should cancel them all without running out of stack', () => {
  const rig = new Rig()
  rig.engine.observer = null
  const x = rig.datum()
  const first = rig.call('link', [[x, 'inout']], { onFailure: 'cancelSuccessors' })
  rig.go()
  for (let i = 0; i < 50_000; i++) {
    rig.call('add', [[x, 'concurrent']])
    rig.call('look', [[x, 'in']])
  }
  rig.fail(first)
  rig.assertIdle()
})

test('a task that is called when all nodes are lost is cancelled for that reason', () => {
  const rig = new Rig({ nodes: [{}, {}] })
  for (const index of [0, 1]) rig.engine.membership.lost(index, ++rig.now)
  const task = rig.call('late')
  assert.equal(task.state, 'cancelled')
  assert.match(String(task.reason), /node/)
})
