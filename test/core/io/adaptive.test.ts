import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeStorage, fair, seeking } from './fake-storage.ts'
import type { Speed } from './fake-storage.ts'
import { HeadDevice } from './head-device.ts'
import type { HeadSettings } from './head-device.ts'
import { IoRig, MB, device } from './io-rig.ts'

const unknown = { read: null, write: null }

function timeOf(speed: Speed, tasks: number, wishes: object, size: number | (() => number) = 2 * MB): number {
  const rig = new IoRig({ storage: [device('disk', 60, unknown)], ioExecutors: 64 })
  rig.many(tasks, 'io', wishes)
  new FakeStorage(rig, speed, size).run()
  assert.equal(rig.engine.readyCount, 0)
  return rig.now
}

/** The best of all fixed numbers of tasks at one time. */
function bestStatic(speed: Speed, tasks: number): number {
  const times = [1, 2, 4, 8, 16, 32, 64].map(k => {
    const rig = new IoRig({ storage: [device('disk', 64)], ioExecutors: 64 })
    rig.many(tasks, 'io', { bandwidth: (64 * MB) / k })
    new FakeStorage(rig, speed, 2 * MB).run()
    return rig.now
  })
  return Math.min(...times)
}

for (const [name, speed] of [
  ['a fair device', fair(60)],
  ['a disk that is best with 8', seeking(60, 8, 0.15)],
  ['a disk that is best with 1', seeking(60, 1, 0.1)],
  ['a disk that is best with 3', seeking(60, 3, 0.3)],
  ['a device that needs 24', seeking(60, 24, 0.02)],
] as const) {
  test(`given ${name} of unknown bandwidth, adapting should end within 5% of the best fixed limit`, context => {
    const best = bestStatic(speed, 500)
    const adaptive = timeOf(speed, 500, { bandwidth: 'adaptive' })
    context.diagnostic(`${(adaptive / best).toFixed(3)} times the best`)
    assert(adaptive <= best * 1.05, `${adaptive} against ${best}`)
  })
}

for (const [name, before, after] of [
  ['loses more with each task', seeking(60, 8, 0.1), seeking(60, 2, 0.5)],
  ['can take more tasks', seeking(60, 2, 0.5), seeking(60, 8, 0.1)],
  ['is three times slower', fair(60), fair(20)],
  ['is three times faster', seeking(20, 4, 0.2), seeking(60, 4, 0.2)],
] as const) {
  test(`given a device that ${name} from the middle on, 20 tasks later it should be used well again`, context => {
    const rig = new IoRig({ storage: [device('disk', 60, unknown)], ioExecutors: 32 })
    rig.many(400, 'io', { bandwidth: 'adaptive' })
    let change = Infinity
    const storage = new FakeStorage(rig, (n, on, now) => (now < change ? before : after)(n, on, now), 2 * MB)
    storage.run(() => storage.ended.length >= 200)
    change = rig.now
    storage.run(() => storage.ended.length >= 220)
    storage.run(() => storage.ended.length >= 260)
    const best = Math.max(...Array.from({ length: 32 }, (_, i) => after(i + 1, rig.device('disk'), 0)))
    context.diagnostic(`${((storage.rate(40) / best) * 100).toFixed(0)}% of what is possible`)
    assert(storage.rate(40) >= best * 0.8, `${storage.rate(40)} of ${best}`)
  })
}

// A disk with a head, whose tasks also wait for other things than the disk.

let seed = 1
const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
const quiet = (): number => 0.2 + random() * 0.8
const disk = (delay: () => number, block = 1.31): HeadSettings => ({
  open: 12,
  block,
  seek: 0.06,
  blocks: 2,
  delay,
})

/** Milliseconds for 500 tasks, and when each of them ended after the change, if there is one. */
function runHead(
  wishes: object,
  settings: HeadSettings,
  change?: HeadSettings,
): { time: number; after: number[] } {
  const rig = new IoRig({ storage: [device('disk', 50)], ioExecutors: 64 })
  rig.many(500, 'io', wishes)
  const storage = new HeadDevice(rig, settings)
  if (change) storage.run(() => storage.ended.length >= 250)
  const from = storage.ended.length === 0 ? 0 : rig.now
  if (change) storage.settings = change
  storage.run()
  return { time: rig.now, after: storage.ended.map(at => at - from).filter(at => at > 0) }
}

const bestOf = (measure: (wishes: object) => number): number =>
  Math.min(...[1, 2, 4, 8, 16].map(k => measure({ bandwidth: (50 * MB) / k })))

test('given a disk with a head, adapting should come near to the best fixed limit', context => {
  seed = 1
  const best = bestOf(wishes => runHead(wishes, disk(quiet)).time)
  const times = Array.from({ length: 5 }, () => runHead({ bandwidth: 'adaptive' }, disk(quiet)).time)
  const ratio = (times.sort((a, b) => a - b)[2] as number) / best
  context.diagnostic(`${ratio.toFixed(3)} times the best`)
  assert(ratio <= 1.05, `${ratio}`)
})

for (const [name, before, after] of [
  ['slower', 1.31, 5],
  ['faster', 5, 1.31],
] as const) {
  test(`given a disk with a head that becomes ${name}, 20 tasks later it should be used well again`, context => {
    seed = 1
    const measure = (wishes: object): number => {
      const { after: ended } = runHead(wishes, disk(quiet, before), disk(quiet, after))
      return (ended[60] as number) - (ended[20] as number)
    }
    const best = bestOf(measure)
    const times = Array.from({ length: 5 }, () => measure({ bandwidth: 'adaptive' }))
    const ratio = best / (times.sort((a, b) => a - b)[2] as number)
    context.diagnostic(`${(ratio * 100).toFixed(0)}% of the best`)
    assert(ratio >= 0.85, `${ratio}`)
  })
}

test('given two kinds, each should get half of the device, however large their tasks are and whichever came first', () => {
  const rig = new IoRig({ storage: [device('disk', 60, unknown)], ioExecutors: 32 })
  rig.many(400, 'small', { bandwidth: 'adaptive' })
  rig.many(100, 'large', { bandwidth: 'adaptive' })
  const storage = new FakeStorage(rig, seeking(60, 4, 0.2), task => (task.kind.name === 'small' ? 1 : 4) * MB)
  storage.run(() => storage.ended.length >= 200)
  const bytes = { small: 0, large: 0 }
  for (const { task, bytes: moved } of storage.ended) bytes[task.kind.name as 'small' | 'large'] += moved
  const share = bytes.small / (bytes.small + bytes.large)
  assert(share > 0.45 && share < 0.55, `the small ones got ${share}`)
})

test('a kind that comes later should not be given all until it has caught up', () => {
  const rig = new IoRig({ storage: [device('disk', 60, unknown)], ioExecutors: 32 })
  rig.many(400, 'early', { bandwidth: 'adaptive' })
  const storage = new FakeStorage(rig, fair(60), 1 * MB)
  storage.run(() => storage.ended.length >= 100)
  rig.many(100, 'late', { bandwidth: 'adaptive' })
  storage.run(() => storage.ended.length >= 200)
  const early = storage.ended.slice(110).filter(({ task }) => task.kind.name === 'early').length
  assert(early > 30 && early < 60, `${early} of 90`)
})

test('tasks that fail should not count, and should give back what they held', () => {
  const rig = new IoRig({ storage: [device('disk', 60, unknown)], ioExecutors: 4 })
  rig.many(8, 'io', { bandwidth: 'adaptive' }).forEach(() => undefined)
  const first = rig.go()
  for (const task of first) {
    rig.engine.cancelTask(task, null, { kind: 'unread' }, rig.now)
    rig.engine.stopped(task, rig.now)
  }
  const disk = rig.device('disk')
  assert.equal(rig.engine.io.limits.adaptive(disk, 'write')?.running, 0)
  assert.equal(rig.go().length, first.length)
})
