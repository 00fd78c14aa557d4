import assert from 'node:assert/strict'
import { test } from 'node:test'
import { demandOf, ioDemandOf } from '../../../src/core/tasks/demand.ts'
import type { Task } from '../../../src/core/tasks/task.ts'
import { fails } from '../rig.ts'
import { IoRig, MB, device, devicesOf } from './io-rig.ts'

test('given every CPU busy, an I/O task should start all the same and overlap with compute', () => {
  const rig = new IoRig({ cpus: 1 })
  const compute = demandOf(1, 0, [])
  rig.submit('a', {}, [], { demand: compute, timed: true })
  rig.submit('b', {}, [], { demand: compute, timed: true })
  rig.write('io')
  const started = rig.go()
  assert.deepEqual(
    started.map(task => task.kind.name),
    ['a', 'io'],
  )
  assert.equal(started[1]?.lane, 1, 'lanes of I/O come after those of the CPUs')
})

test('given as many I/O tasks as executors, the next should wait, and lanes should never overlap', () => {
  const rig = new IoRig({ ioExecutors: 3, cpus: 2 })
  rig.many(5, 'io')
  const first = rig.go()
  assert.deepEqual(
    first.map(task => task.lane),
    [2, 3, 4],
  )
  assert.match(rig.engine.explain(rig.write('late')), /all 3 I\/O executors are busy/)
  rig.finish(first[1] as Task)
  assert.deepEqual(
    rig.go().map(task => task.lane),
    [3],
  )
})

test('given a static bandwidth, as many tasks should run as fit, and no more', () => {
  const rig = new IoRig({ storage: [device('disk', 100)] })
  const tasks = rig.many(9, 'io', { bandwidth: 30 * MB })
  const first = rig.go()
  assert.equal(first.length, 3)
  assert.equal(rig.device('disk').write.used, 90 * MB)
  assert.match(
    rig.engine.explain(tasks[3] as Task),
    /disk has 10 MB\/s of 100 MB\/s left and it asks for 30 MB\/s/,
  )
  rig.finish(first[0] as Task)
  assert.equal(rig.go().length, 1)
})

test('given reads and writes, each direction should have a budget of its own', () => {
  const rig = new IoRig({ storage: [device('disk', 100, { read: 50 * MB })] })
  const out = rig.file()
  rig.write('w', { bandwidth: 100 * MB }, {}, out)
  const [writer] = rig.go()
  rig.finish(writer as Task)
  rig.write('w', { bandwidth: 100 * MB })
  rig.read('r', { bandwidth: 25 * MB }, out)
  rig.read('r', { bandwidth: 25 * MB }, out)
  rig.read('r', { bandwidth: 25 * MB }, out)
  assert.deepEqual(
    rig.go().map(task => task.kind.name),
    ['w', 'r', 'r'],
  )
})

test('given a task that copies, it should hold bandwidth where it reads and where it writes', () => {
  const rig = new IoRig({ storage: [device('fast', 100), device('slow', 40)] })
  const input = rig.file()
  rig.engine.io.locate(input.current, rig.device('slow'), 5)
  const copies = Array.from({ length: 3 }, () =>
    rig.submit('copy', { bandwidth: 20 * MB }, [
      { datum: input, mode: 'in' },
      { datum: rig.file(), mode: 'out' },
    ]),
  )
  assert.equal(rig.go().length, 2)
  assert.equal(rig.device('slow').read.used, 40 * MB)
  assert.equal(rig.device('fast').write.used, 40 * MB)
  for (const copy of copies.slice(0, 2)) rig.finish(copy)
  assert.equal(rig.device('slow').read.used, 0)
})

test('given a shared device, all nodes should draw on one budget', () => {
  const shared = device('pfs', 100, { shared: true })
  const rig = new IoRig({ nodes: [{ storage: [shared] }, { storage: [shared] }, { storage: [shared] }] })
  assert.equal(rig.engine.io.devices.length, 1)
  rig.many(10, 'io', { bandwidth: 25 * MB })
  const started = rig.go()
  assert.equal(started.length, 4)
  assert(new Set(started.map(({ node }) => node)).size > 1, 'nodes take turns')
})

test('given a budget of the node, its devices together should stay within it', () => {
  const rig = new IoRig({
    nodes: [{ storage: [device('a', 100), device('b', 90)], bandwidth: { write: 120 * MB } }],
  })
  rig.many(5, 'io', { bandwidth: 50 * MB })
  assert.deepEqual(devicesOf(rig.go()), ['a', 'a'])
  assert.equal(rig.device('b').write.used, 0)
})

test('given a request larger than any device, submitting it should fail and name both numbers', () => {
  const rig = new IoRig({
    storage: [device('a', 100, { capacity: 10 * MB }), device('b', 50, { capacity: 90 * MB })],
  })
  assert.throws(
    () => rig.write('big', { bandwidth: 101 * MB }),
    fails('MR_CONSTRAINT', '101 MB/s', '100 MB/s', 'big'),
  )
  assert.throws(() => rig.write('big', { size: 91 * MB }), fails('MR_CONSTRAINT', '91 MB', '90 MB'))
  assert.throws(() => rig.write('big', { size: 20 * MB, bandwidth: 60 * MB }), fails('MR_CONSTRAINT', 'both'))
  assert.throws(() => rig.write('big', { device: 'c' }), fails('MR_CONSTRAINT', "storage 'c'"))
  assert.throws(
    () => rig.write('big', { bandwidth: { min: 200 * MB, max: 300 * MB, delta: 2 } }),
    fails('MR_CONSTRAINT', '200 MB/s', '100 MB/s'),
  )
  assert.equal(rig.engine.readyCount, 0)
})

test('given tasks that fail, are retried or cancelled, all that they held should come back', () => {
  const rig = new IoRig({ storage: [device('disk', 100, { capacity: 100 })] })
  const wishes = { bandwidth: 40 * MB, size: 30 }
  rig.write('retried', wishes, { retries: 1 })
  rig.write('cancelled', wishes)
  const [retried, cancelled] = rig.go() as [Task, Task]
  assert.equal(rig.device('disk').used, 60)
  rig.fail(retried)
  assert.equal(rig.device('disk').used, 30)
  rig.engine.cancelTask(cancelled, null, { kind: 'unread' }, rig.now)
  assert.deepEqual(rig.go(), [retried])
  rig.engine.stopped(cancelled, rig.now)
  rig.finish(retried)
  const { write, used, running } = rig.device('disk')
  assert.deepEqual([write.used, used, running.size], [0, 30, 0], 'what it wrote stays')
})

test('given a compute task that asks for bandwidth, it should hold a CPU and the bandwidth', () => {
  const rig = new IoRig({ cpus: 4, storage: [device('disk', 100)] })
  const demand = ioDemandOf({ bandwidth: 60 * MB }, 1)
  for (let i = 0; i < 2; i++) rig.write('c', {}, { demand })
  rig.write('plain', {}, { demand: demandOf(1, 0, []), timed: true })
  const started = rig.go()
  assert.deepEqual(
    started.map(task => task.kind.name),
    ['c', 'plain'],
  )
  assert.equal(rig.device('disk').write.used, 60 * MB)
  rig.finish(started[0] as Task)
  assert.equal(rig.go().length, 1)
})

test('given an I/O task that waits for tasks it called, those should have its executor meanwhile', () => {
  const rig = new IoRig({ ioExecutors: 1, storage: [device('disk', 100)] })
  const caller = rig.write('caller', { bandwidth: 100 * MB })
  rig.go()
  const called = rig.write('called', { bandwidth: 100 * MB }, { parent: caller })
  assert.deepEqual(rig.go(), [])
  rig.engine.blocked(caller, 'calls', rig.now)
  assert.deepEqual(rig.go(), [called])
  rig.engine.unblocked(caller)
  assert.deepEqual(rig.go(), [])
  rig.finish(called)
  assert.deepEqual(rig.go(), [caller])
  rig.finish(caller)
  assert.equal(rig.device('disk').write.used, 0)
})

test('given a source that is slower than what a task asks for, it should start and hold all of the source', () => {
  const rig = new IoRig({ storage: [device('disk', 100, { read: 5 * MB })] })
  const file = rig.file()
  rig.write('w', { bandwidth: 10 * MB }, {}, file)
  rig.finish(rig.go()[0] as Task)
  const copy = (): Task =>
    rig.submit('copy', { bandwidth: 10 * MB }, [
      { datum: file, mode: 'in' },
      { datum: rig.file(), mode: 'out' },
    ])
  copy()
  copy()
  const [first, second] = rig.go()
  assert.equal(second, undefined, 'nothing is left to read with')
  assert.equal(rig.device('disk').read.used, 5 * MB)
  rig.finish(first as Task)
  assert.equal(rig.go().length, 1)
})
