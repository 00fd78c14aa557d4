import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fifo, lifoHrf, rank } from '../../src/core/schedule/policy.ts'
import { OrderedQueue } from '../../src/general/ordered-queue.ts'
import { IoRig, device } from './io/io-rig.ts'
import { Rig } from './rig.ts'

test('nothing starts while a run is paused; what runs ends, and the rest starts when it goes on', () => {
  const rig = new Rig({ cpus: 1 })
  const first = rig.call('a')
  assert.deepEqual(rig.go(), [first])
  rig.call('b')
  rig.engine.control.isPaused = true
  rig.finish(first)
  assert.deepEqual(rig.names(), [])
  rig.engine.control.isPaused = false
  assert.deepEqual(rig.drain(), ['b'])
  rig.assertIdle()
})

for (const [name, policy] of Object.entries({ fifo, rank, lifoHrf })) {
  for (const nodes of [1, 3]) {
    test(`a changed priority counts for tasks that are ready, and that wait: ${name} on ${nodes} nodes`, () => {
      const rig = new Rig({ cpus: 1, policy, nodes: Array.from({ length: nodes }, () => ({})) })
      const busy = Array.from({ length: nodes }, () => rig.call('busy'))
      assert.equal(rig.go().length, nodes)
      const tasks = ['a', 'b', 'c', 'd', 'e'].map(one => rig.call(one))
      const waiting = rig.call('late', [[rig.datum(), 'out']])
      const { control } = rig.engine
      assert.equal(control.prioritize(tasks[3]!, false, 5), 1)
      assert.equal(control.prioritize(waiting, true, 9), 1)
      // Up and down again: the last word counts.
      control.prioritize(tasks[4]!, false, 7)
      control.prioritize(tasks[4]!, false, -7)
      assert.equal(control.prioritize(busy[0]!, false, 1), 0, 'it has begun')
      for (const one of busy) rig.finish(one)
      const order = rig.drain()
      assert.equal(order.length, 6)
      assert.deepEqual(new Set(order), new Set(['a', 'b', 'c', 'd', 'e', 'late']), 'each ran once')
      assert.ok(order.indexOf('late') < nodes && order.indexOf('d') <= nodes, order.join())
      assert.ok(order.indexOf('e') >= 5 - (nodes - 1), order.join())
      assert.deepEqual(control.find(tasks[0]!.id), null)
      rig.assertIdle()
    })
  }
}

test('a changed priority counts for I/O tasks', () => {
  const rig = new IoRig({ storage: [device('disk', 100)], ioExecutors: 1 })
  const tasks = Array.from({ length: 4 }, (_, i) => rig.write(`w${i}`, { bandwidth: 1e6 }))
  const begun = rig.go()
  assert.equal(begun.length, 1)
  rig.engine.control.prioritize(tasks[3]!, false, 4)
  rig.finish(begun[0]!)
  assert.deepEqual(rig.go(), [tasks[3]])
})

test('a task that a person cancels never runs, nor does what needs it, and the group knows', () => {
  const rig = new Rig({ cpus: 1 })
  const datum = rig.datum()
  const running = rig.call('running')
  const maker = rig.call('maker', [[datum, 'out']])
  const reader = rig.call('reader', [[datum, 'in']])
  rig.go()
  rig.engine.cancelTask(maker, null, { kind: 'person', by: 'ada' }, ++rig.now)
  assert.equal(maker.reason, 'ada cancelled it on the live page')
  assert.equal(reader.state, 'cancelled')
  assert.equal(rig.engine.root.missing, maker)
  rig.engine.cancelTask(running, null, { kind: 'person', by: 'ada' }, ++rig.now)
  rig.go()
  assert.deepEqual(rig.stops(), [running])
  rig.engine.stopped(running, ++rig.now)
  rig.assertIdle()
})

test('an item is taken out of an ordered queue, and the others keep their order', () => {
  const queue = new OrderedQueue<number>((a, b) => a < b)
  for (const one of [5, 1, 9, 3, 7]) queue.push(one)
  queue.delete(3)
  queue.delete(4)
  assert.deepEqual(
    Array.from({ length: 5 }, () => queue.pop()),
    [1, 5, 7, 9, undefined],
  )
})
