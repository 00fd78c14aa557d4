import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AccessMode } from '../../src/core/data/datum.ts'
import { source } from '../../src/core/data/datum.ts'
import type { Access } from '../../src/core/data/datum.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { Rig, cpus } from './rig.ts'
import type { Uses } from './rig.ts'

test('given CONCURRENT tasks on one datum, we should run them at the same time and give them one version', () => {
  const rig = new Rig({ cpus: 3 })
  const x = rig.datum()
  const team = [1, 2, 3].map(() => rig.call('add', [[x, 'concurrent']]))
  assert.deepEqual(rig.names(), ['add', 'add', 'add'])
  assert.equal(new Set(team.map(({ accesses }) => accesses[0]?.write)).size, 1)
})

test('given COMMUTATIVE tasks, we should run them one at a time, whichever can go first', () => {
  const rig = new Rig({ cpus: 4 })
  const x = rig.datum()
  const y = rig.datum()
  const slow = rig.call('slow', [[y, 'out']])
  const late = rig.call('late', [
    [x, 'commutative'],
    [y, 'in'],
  ])
  const early = rig.call('early', [[x, 'commutative']])
  const other = rig.call('other', [[x, 'commutative']])
  assert.deepEqual(rig.names(), ['slow', 'early'])
  assert.equal(other.state, 'parked')
  rig.finish(slow)
  assert.deepEqual(rig.names(), [])
  assert.equal(late.state, 'parked')
  rig.finish(early)
  assert.deepEqual(rig.names(), ['other'])
  rig.finish(other)
  assert.deepEqual(rig.names(), ['late'])
  rig.finish(late)
  rig.assertIdle()
})

test('given two different COMMUTATIVE functions on one datum, we should not run them at the same time', () => {
  const rig = new Rig({ cpus: 4 })
  const x = rig.datum()
  const plus = rig.call('plus', [[x, 'commutative']])
  const minus = rig.call('minus', [[x, 'commutative']])
  assert.notEqual(plus.kind, minus.kind)
  assert.deepEqual(rig.names(), ['plus'])
  rig.finish(plus)
  assert.deepEqual(rig.names(), ['minus'])
})

test('given a member that has to wait for the datum, we should start what comes after it in the same moment', () => {
  const rig = new Rig({ cpus: 3 })
  const x = rig.datum()
  rig.call('holder', [[x, 'commutative']])
  rig.call('parked', [[x, 'commutative']])
  rig.call('free')
  assert.deepEqual(rig.names(), ['holder', 'free'])
})

test('given members of a COMMUTATIVE team, each should start from what the one before it left', () => {
  const rig = new Rig()
  const x = rig.datum()
  const seen: unknown[] = []
  const team = ['a', 'b', 'c'].map(name => rig.call(name, [[x, 'commutative']]))
  for (let [task] = rig.go(); task; [task] = rig.go()) {
    seen.push(source(task.accesses[0] as Access)?.value)
    rig.finish(task)
  }
  assert.deepEqual(seen, ['initial', team[0]?.name, team[1]?.name])
})

const OTHERS: AccessMode[] = ['in', 'out', 'inout']
for (const mode of ['concurrent', 'commutative'] as const) {
  for (const other of [...OTHERS, mode === 'concurrent' ? 'commutative' : 'concurrent'] as AccessMode[]) {
    test(`given a ${mode} team, the first ${other} access should close it, and the next member be in a new one`, () => {
      const rig = new Rig({ cpus: 4 })
      const x = rig.datum()
      const first = rig.call('first', [[x, mode]])
      const second = rig.call('second', [[x, mode]])
      rig.call('other', [[x, other]])
      const third = rig.call('third', [[x, mode]])
      const [a, b, c] = [first, second, third].map(task => task.accesses[0]?.write)
      assert.equal(a, b)
      assert.notEqual(b, c)
      rig.drain()
      rig.assertIdle()
      assert.equal(first.state, 'done')
      assert.equal(third.state, 'done')
    })
  }
  test(`given a ${mode} team that is still open, we should commit its version only when the program reads`, () => {
    const rig = new Rig()
    const x = rig.datum()
    rig.call('member', [[x, mode]])
    rig.drain()
    assert.equal(x.current.state, 'pending')
    const later = rig.call('member', [[x, mode]])
    assert.equal(later.accesses[0]?.write, x.current)
    const version = rig.engine.read(x, ++rig.now)
    assert.equal(version.state, 'pending')
    rig.drain()
    assert.equal(version.state, 'ready')
    assert.equal(version.value, later.name)
  })
}

test('given a member that is cancelled because of a failure, we should name that failure as the cause', () => {
  const rig = new Rig()
  const x = rig.datum()
  const y = rig.datum()
  const bad = rig.call('bad', [[y, 'out']], { onFailure: 'cancelSuccessors' })
  rig.call('fine', [[x, 'concurrent']])
  rig.call('doomed', [
    [x, 'concurrent'],
    [y, 'in'],
  ])
  const reader = rig.call('reader', [[x, 'in']])
  const [, fine] = rig.go()
  rig.fail(bad)
  rig.finish(fine as Task)
  rig.go()
  assert.equal(reader.state, 'cancelled')
  assert.equal(reader.cause, bad)
  assert.equal(x.current.cause, bad)
  assert.match(reader.reason, /bad#1 failed/)
})

test('given a failed member, the others should run, the version fail, and the base be fallen back to', () => {
  const rig = new Rig()
  const x = rig.datum()
  const bad = rig.call('bad', [[x, 'concurrent']], { onFailure: 'cancelSuccessors' })
  const good = rig.call('good', [[x, 'concurrent']])
  const reader = rig.call('reader', [[x, 'in']])
  rig.go()
  rig.fail(bad)
  assert.equal(reader.state, 'waiting', 'the team has a member that runs')
  rig.finish(good)
  assert.equal(reader.state, 'cancelled')
  assert.equal(x.current.state, 'failed')
  const { current: lost } = x
  rig.engine.fallBack(x)
  rig.go()
  assert.equal(x.current.value, 'initial')
  assert.deepEqual(rig.discarded(), [lost], 'what the good member left')
})

test('given a COMMUTATIVE holder that is cancelled while it runs, we should keep the datum until it has stopped', () => {
  const rig = new Rig({ cpus: 2 })
  const x = rig.datum()
  const holder = rig.call('holder', [[x, 'commutative']])
  const next = rig.call('next', [[x, 'commutative']])
  rig.go()
  rig.engine.cancelTask(holder, null, { kind: 'unread' }, ++rig.now)
  assert.deepEqual(rig.names(), [])
  assert.equal(next.state, 'parked')
  rig.engine.stopped(holder, ++rig.now)
  assert.deepEqual(rig.names(), ['next'])
})

test('given a COMMUTATIVE holder that fails and is tried again, we should let another have the datum meanwhile', () => {
  const rig = new Rig({ cpus: 2 })
  const x = rig.datum()
  const flaky = rig.call('flaky', [[x, 'commutative']], { retries: 1 })
  const next = rig.call('next', [[x, 'commutative']])
  rig.go()
  rig.fail(flaky)
  const [running] = rig.go()
  assert.equal(rig.go().length, 0)
  rig.finish(running as Task)
  const [last] = rig.go()
  assert.deepEqual(new Set([running, last]), new Set([flaky, next]))
  rig.finish(last as Task)
  rig.assertIdle()
})

test('given a parked member that is cancelled, we should let the others go on', () => {
  const rig = new Rig({ cpus: 2 })
  const x = rig.datum()
  const [a, b, c] = ['a', 'b', 'c'].map(name => rig.call(name, [[x, 'commutative']])) as [Task, Task, Task]
  rig.go()
  rig.engine.cancelTask(b, null, { kind: 'unread' }, ++rig.now)
  assert.equal(b.state, 'cancelled')
  rig.finish(a)
  assert.deepEqual(rig.go(), [c])
})

test('given a member that was woken and then cancelled before it started, we should wake the next', () => {
  const rig = new Rig({ cpus: 1 })
  const x = rig.datum()
  const [a, b, c] = ['a', 'b', 'c'].map(name => rig.call(name, [[x, 'commutative']])) as [Task, Task, Task]
  rig.go()
  rig.engine.finished(a, ++rig.now, 1)
  rig.engine.cancelTask(b, null, { kind: 'unread' }, ++rig.now)
  assert.deepEqual(rig.go(), [c])
})

test('given tasks that need two COMMUTATIVE data, we should never lose one that waits', () => {
  const rig = new Rig({ cpus: 4 })
  const x = rig.datum()
  const y = rig.datum()
  const both: Uses = [
    [x, 'commutative'],
    [y, 'commutative'],
  ]
  const names: string[] = []
  for (let i = 0; i < 5; i++) {
    for (const [name, uses] of Object.entries({
      [`x${i}`]: [[x, 'commutative']] as Uses,
      [`both${i}`]: i % 2 ? both : both.toReversed(),
      [`y${i}`]: [[y, 'commutative']] as Uses,
    })) {
      rig.call(name, uses)
      names.push(name)
    }
  }
  assert.deepEqual(rig.drain().toSorted(), names.toSorted())
  rig.assertIdle()
})

test('given a member that was woken and has to wait for another datum, we should wake the next', () => {
  const rig = new Rig({ cpus: 4 })
  const [x, y] = [rig.datum(), rig.datum()]
  const holder = rig.call('holder', [[x, 'commutative']])
  rig.go()
  rig.call('both', [
    [x, 'commutative'],
    [y, 'commutative'],
  ])
  rig.call('next', [[x, 'commutative']])
  assert.deepEqual(rig.names(), [])
  rig.finish(holder)
  rig.call('urgent', [[y, 'commutative']], { priority: 5 })
  assert.deepEqual(rig.names(), ['urgent', 'next'])
})

test('given many COMMUTATIVE tasks, the story of each should stay short', () => {
  const rig = new Rig({ cpus: 4 })
  const x = rig.datum()
  const tasks = Array.from({ length: 2000 }, () => rig.call('add', [[x, 'commutative']], { demand: cpus(1) }))
  assert.equal(rig.drain().length, 2000)
  const longest = Math.max(...tasks.map(task => task.story().split(',').length))
  assert(longest <= 10, `${longest} states`)
})

test('given members of higher priority, we should give them the datum first', () => {
  const rig = new Rig({ cpus: 2 })
  const x = rig.datum()
  rig.call('first', [[x, 'commutative']])
  const [first] = rig.go()
  rig.call('low', [[x, 'commutative']])
  rig.call('high', [[x, 'commutative']], { priority: 5 })
  assert.deepEqual(rig.names(), [])
  rig.finish(first as Task)
  assert.deepEqual(rig.drain(), ['high', 'low'])
})

test('given a team in place, we should make it wait for readers of its base, not for its own members', () => {
  const rig = new Rig({ cpus: 4 })
  const x = rig.datum(true)
  const reader = rig.call('reader', [[x, 'in']])
  rig.call('a', [[x, 'concurrent']])
  rig.call('b', [[x, 'concurrent']])
  assert.deepEqual(rig.names(), ['reader'])
  rig.finish(reader)
  assert.deepEqual(rig.names(), ['a', 'b'])
})

test('given a team that stays open, we should not hold on to members that have ended', () => {
  const rig = new Rig()
  const log = rig.datum()
  for (let i = 0; i < 20; i++) {
    rig.call('add', [[log, 'concurrent']])
    rig.drain()
  }
  assert.equal(log.current.team?.tasks.size, 0)
})

test('given a team that is closed by a later access, the event of its end should carry the time of that', () => {
  const rig = new Rig()
  const x = rig.datum()
  Object.assign(x, { path: '/log' })
  rig.call('add', [[x, 'concurrent']])
  rig.drain()
  rig.now = 500
  rig.call('look', [[x, 'in']])
  const committed = rig.events.find(({ type }) => type === 'committed')
  assert.equal(committed?.at, 501)
})
