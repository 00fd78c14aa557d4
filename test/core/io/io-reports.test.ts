import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Task } from '../../../src/core/tasks/task.ts'
import { FakeStorage, fair, seeking } from './fake-storage.ts'
import { IoRig, MB, device } from './io-rig.ts'

test('why a task waits should be told once, and be a sentence with the numbers', () => {
  const rig = new IoRig({ storage: [device('disk', 100, { capacity: 50 })] })
  rig.many(3, 'io', { bandwidth: 60 * MB, size: 20 })
  rig.write('big', { size: 40 })
  rig.go()
  rig.go()
  assert.deepEqual(
    rig.of('waits').map(({ reason, lacks }) => [lacks, reason]),
    [
      ['device', 'disk has 40 MB/s of 100 MB/s left and it asks for 60 MB/s'],
      ['room', 'disk has 30 B free and it needs 40 B'],
    ],
  )
})

test('a task lacks room only where no device has room for it', () => {
  const rig = new IoRig({ storage: [device('nvme', 200, { capacity: 10 }), device('disk', 100)] })
  rig.many(3, 'io', { bandwidth: 60 * MB, size: 20 })
  rig.go()
  assert.deepEqual(
    rig.of('waits').map(({ lacks }) => lacks),
    ['device'],
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

test("a file that has become the user's still takes room of its device", () => {
  const rig = new IoRig({ storage: [device('disk', 100, { capacity: 100 })] })
  const first = rig.write('first', { size: 30 })
  rig.go()
  rig.finish(first, 1, 30)
  for (const { write } of first.accesses) if (write) rig.engine.io.handOver(write)
  const second = rig.write('second', { size: 60 })
  rig.go()
  rig.finish(second, 3, 60)
  assert.deepEqual([rig.of('device').at(-1)?.used, rig.device('disk').free], [90, 10])
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

test('a task that waits should be counted at the device that it waits for, and at no other', () => {
  const storage = [device('fast', 100, { capacity: 30 * MB }), device('slow', 10)]
  const rig = new IoRig({ storage })
  const waiting = (): number[] => ['fast', 'slow'].map(name => rig.engine.io.waitingFor(rig.device(name)))
  rig.many(5, 'any', { bandwidth: 10 * MB, size: 10 * MB })
  rig.many(3, 'pinned', { bandwidth: 10 * MB, size: 1, device: 'slow' })
  assert.deepEqual(waiting(), [5, 3])
  // Three fill the fast device, one takes all of the slow one: nothing has room but the slow one, and that is busy.
  const started = rig.go()
  assert.equal(started.length, 4)
  assert.deepEqual(waiting(), [0, 4])
  rig.many(2, 'small', { bandwidth: 100 * MB, size: 0 })
  assert.deepEqual(waiting(), [2, 4])
})

test('what adapting has found out should be told, with what it was compared with', () => {
  const rig = new IoRig({ storage: [device('disk', 100, { read: null, write: null })] })
  rig.many(200, 'io', { bandwidth: 'adaptive' })
  new FakeStorage(rig, seeking(60, 8, 0.15), 1 * MB).run()
  const verdicts = rig.of('verdict')
  assert(verdicts.length > 0 && verdicts.length < 20, `${verdicts.length} verdicts`)
  const { concurrency, bandwidth } = verdicts.at(-1) as (typeof verdicts)[number]
  assert(concurrency >= 6 && concurrency <= 12, `${concurrency} at a time`)
  assert(Math.abs(concurrency * bandwidth - 60 * MB) < 12 * MB, `${concurrency * bandwidth} bytes per second`)
  assert(new Set(rig.of('trial').map(trial => trial.concurrency)).size >= 2)
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
