import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Task } from '../../../src/core/task.ts'
import { FakeStorage, fair } from './fake-storage.ts'
import { IoRig, MB, device } from './io-rig.ts'

test('why a task waits should be told once, and be a sentence with the numbers', () => {
  const rig = new IoRig({ storage: [device('disk', 100, { capacity: 50 })] })
  rig.many(3, 'io', { bandwidth: 60 * MB, size: 20 })
  rig.write('big', { size: 40 })
  rig.go()
  rig.go()
  assert.deepEqual(
    rig.of('waits').map(({ reason }) => reason),
    ['disk has 40 MB/s of 100 MB/s left and it asks for 60 MB/s', 'disk has 30 B free and it needs 40 B'],
  )
})

test('the state of a device should be told when it changes, and when it has become idle', () => {
  const rig = new IoRig({ storage: [device('disk', 100)] })
  rig.many(200, 'io', { bandwidth: 10 * MB, size: 1 })
  new FakeStorage(rig, fair(100), 1 * MB).run()
  const states = rig.of('device')
  assert(states.length > 5 && states.length < 200, `${states.length} events`)
  assert(states.some(({ running, write }) => running >= 9 && write >= 90 * MB))
  assert.deepEqual([states.at(-1)?.running, states.at(-1)?.write], [0, 0])
})

test('a task that waits for learning, for its limit or for its turn should say so', () => {
  const rig = new IoRig({ storage: [device('disk', 100)], ioExecutors: 8, learningShare: 1 })
  rig.many(20, 'learner', { bandwidth: 'auto' })
  rig.go()
  const other = rig.write('other')
  rig.go()
  assert.match(
    rig.engine.explain(other),
    /all 8 I\/O executors are busy|kept free to learn the limit of learner/,
  )
  const adaptive = new IoRig({ storage: [device('disk', 100)] })
  const tasks = adaptive.many(20, 'io', { bandwidth: 'adaptive' })
  adaptive.go()
  assert.match(adaptive.engine.explain(tasks.at(-1) as Task), /disk does best with 2 tasks at a time now/)
})

test('a task that waits for others, runs, or has ended should say that', () => {
  const rig = new IoRig({ storage: [device('disk', 100)] })
  const file = rig.file()
  const writer = rig.write('writer', {}, {}, file)
  const reader = rig.read('reader', {}, file)
  assert.match(rig.engine.explain(reader), new RegExp(`waits for ${writer.name}`))
  rig.go()
  assert.match(rig.engine.explain(writer), /runs on disk/)
  rig.finish(writer)
  assert.match(rig.engine.explain(writer), /has ended \(done\)/)
})
