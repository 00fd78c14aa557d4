import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bestFor, ladder, timeFor, worthOfFew } from '../../../src/core/io/trials.ts'
import type { Rung, Trial } from '../../../src/core/io/trials.ts'
import type { Task } from '../../../src/core/tasks/task.ts'
import { FakeStorage, fair, seeking } from './fake-storage.ts'
import { IoRig, MB, device } from './io-rig.ts'

const concurrencies = (rungs: readonly Rung[]): number[] => rungs.map(({ concurrency }) => concurrency)

test('without bounds, trials should begin with bandwidth over executors and double', () => {
  const rungs = ladder(450, 225, null)
  assert.deepEqual(
    rungs.map(({ bandwidth }) => bandwidth),
    [2, 4, 8, 16, 32, 64, 128, 256],
  )
  assert.deepEqual(concurrencies(rungs), [225, 112, 56, 28, 14, 7, 3, 1])
})

test('with bounds, trials should go from min to max by delta', () => {
  const rungs = ladder(450, 225, { min: 10, max: 50, delta: 2 })
  assert.deepEqual(
    rungs.map(({ bandwidth }) => bandwidth),
    [10, 20, 40],
  )
  assert.deepEqual(concurrencies(rungs), [45, 22, 11])
})

const registry: Trial[] = [
  { bandwidth: 2, concurrency: 200, mean: 400 },
  { bandwidth: 4, concurrency: 100, mean: 150 },
  { bandwidth: 8, concurrency: 50, mean: 70 },
]

test('the time for n tasks should be that of the full groups and of the rest', () => {
  const [first, second, third] = registry as [Trial, Trial, Trial]
  assert.equal(timeFor(200, first, registry), 400)
  assert.equal(timeFor(200, second, registry), 300)
  assert.equal(timeFor(200, third, registry), 280)
  // The rest of 20 runs as a group of 50 would.
  assert.equal(timeFor(220, second, registry), 300 + 70)
  assert.equal(timeFor(60, first, registry), 150, 'fewer than one group: as the nearest larger group')
})

test('the choice should depend on how many tasks wait, and a tie should go to the higher bandwidth', () => {
  assert.equal(bestFor(500, registry)?.bandwidth, 8)
  assert.equal(bestFor(1, registry)?.bandwidth, 8)
  const equal: Trial[] = [
    { bandwidth: 2, concurrency: 4, mean: 40 },
    { bandwidth: 4, concurrency: 2, mean: 20 },
    { bandwidth: 8, concurrency: 1, mean: 10 },
  ]
  assert.equal(bestFor(8, equal)?.bandwidth, 8)
  assert.equal(bestFor(8, [...equal].reverse())?.bandwidth, 8)
  const slow: Trial[] = [
    { bandwidth: 2, concurrency: 4, mean: 20 },
    { bandwidth: 8, concurrency: 1, mean: 10 },
  ]
  assert.equal(bestFor(1, slow)?.bandwidth, 8)
  assert.equal(bestFor(4, slow)?.bandwidth, 2)
})

test('what few tasks have shown should have to be worth it, and more so of many tasks at one time', () => {
  const few = (...means: number[]): Trial[] =>
    means.map((mean, i) => ({ bandwidth: 64 / 4 ** (i + 1), concurrency: 4 ** (i + 1), mean }))
  const chosen = (trials: Trial[]): number | undefined => bestFor(1600, trials, worthOfFew)?.concurrency
  assert.equal(chosen(few(10, 39)), 4, '16 at a time gain 2.5%')
  assert.equal(chosen(few(10, 37)), 4, '16 at a time gain 8%')
  assert.equal(chosen(few(10, 35)), 16, '16 at a time gain 14%')
  const [two] = few(9).map(trial => ({ ...trial, bandwidth: 32, concurrency: 2, mean: 5.2 }))
  assert.equal(chosen([two as Trial, ...few(10)]), 4, '4 at a time gain 4%')
})

/** Times of a task, by how many run at one time, with which the paper's HMMER run ended its learning. */
function runTimes(times: Record<number, number>, tasks: number, options: object = {}): IoRig {
  const rig = new IoRig({ storage: [device('disk', 450)], ioExecutors: 225, learning: 'paper', ...options })
  rig.many(tasks, 'checkpoint', { bandwidth: 'auto' })
  for (let group = rig.go(); group.length > 0; group = rig.go()) {
    const took = times[group.length] ?? group.length
    const begin = rig.now
    for (const task of group) rig.finish(task, begin + took)
  }
  return rig
}

test("given all tasks to learn with, learning should be the paper's: epochs, half-time rule, registry", () => {
  // 225 -> 112 -> 56 halves at least; 28 does not.
  const rig = runTimes({ 225: 1000, 112: 450, 56: 200, 28: 150 }, 1000)
  assert.deepEqual(
    rig.of('trial').map(({ bandwidth, concurrency, mean }) => [bandwidth / MB, concurrency, mean]),
    [
      [2, 225, 1000],
      [4, 112, 450],
      [8, 56, 200],
      [16, 28, 150],
    ],
  )
  const [verdict] = rig.of('verdict')
  assert.equal(verdict?.bandwidth, 8 * MB)
  assert.equal(verdict?.concurrency, 56)
  assert.equal(verdict?.learned, 225 + 112 + 56 + 28)
  const [known] = rig.engine.io.export()
  assert.deepEqual(
    known?.trials.map(({ concurrency }) => concurrency),
    [225, 112, 56],
    'the trial that broke the rule is not in the registry',
  )
})

test('a time that halves exactly should let learning go on to the last rung', () => {
  const rig = runTimes({}, 1000)
  assert.equal(rig.of('trial').length, 8)
  assert.equal(rig.of('verdict').at(-1)?.concurrency, 1, 'all equal: the highest bandwidth')
})

test('bounded learning should try every value, also after one that does not halve', () => {
  const rig = new IoRig({ storage: [device('disk', 400)], learning: 'paper' })
  rig.many(300, 'io', { bandwidth: { min: 10 * MB, max: 80 * MB, delta: 2 } })
  for (let group = rig.go(); group.length > 0; group = rig.go()) {
    const begin = rig.now
    for (const task of group) rig.finish(task, begin + 100)
  }
  assert.deepEqual(
    rig.of('trial').map(({ concurrency }) => concurrency),
    [40, 20, 10, 5],
  )
  assert.equal(rig.of('verdict')[0]?.concurrency, 40)
})

test('an epoch that ends early should not count its few tasks as the time of many, and be tried again', () => {
  const rig = new IoRig({ storage: [device('disk', 450)], ioExecutors: 225, learning: 'paper' })
  rig.many(6, 'io', { bandwidth: 'auto' })
  const few = rig.go()
  assert.equal(few.length, 6)
  for (const task of few) rig.finish(task, 10)
  assert.deepEqual(rig.of('trial'), [], 'six at one time say nothing of 225')
  rig.many(300, 'io', { bandwidth: 'auto' })
  assert.equal(rig.go().length, 225)
})

test('in the way of the paper, a node that learns should do no other I/O, and equal nodes learn one at a time', () => {
  const own = (name: string) => [device(`fast`, 100), device(`slow ${name}`, 50)]
  const rig = new IoRig({
    nodes: ['a', 'b'].map(name => ({ storage: own(name) })),
    ioExecutors: 8,
    learning: 'paper',
  })
  rig.many(60, 'auto', { bandwidth: 'auto', device: 'fast' })
  rig.many(4, 'other', { bandwidth: 10 * MB, device: 'slow a' })
  rig.many(4, 'else', { bandwidth: 10 * MB, device: 'slow b' })
  const storage = new FakeStorage(rig, seeking(64, 4, 0.2), 1 * MB)
  let learned = 0
  storage.run(() => {
    const learning = rig.engine.io.devices.filter(({ learner }) => learner?.isLearning)
    assert(learning.length <= 1, 'one at a time')
    for (const { node } of learning) {
      learned++
      const kinds = [...storage.running.keys()]
        .filter(task => task.node === node)
        .map(({ kind }) => kind.name)
      assert.deepEqual([...new Set(kinds)], ['auto'])
    }
    return false
  })
  assert(learned > 0)
  assert.equal(rig.engine.readyCount, 0)
})

test('the choice should be made again when tasks arrive', () => {
  const learned = [{ kind: 'io', device: 'disk', bandwidth: 1, spent: 0, trials: [] as Trial[] }]
  learned[0]?.trials.push(
    { bandwidth: 25 * MB, concurrency: 4, mean: 20 },
    { bandwidth: 100 * MB, concurrency: 1, mean: 10 },
  )
  const rig = new IoRig({ storage: [device('disk', 100)], learned })
  const [first] = rig.many(1, 'io', { bandwidth: 'auto' })
  assert.equal(rig.go().length, 1)
  assert.equal(first?.io?.bandwidth, 100 * MB)
  rig.finish(first as Task)
  rig.many(4, 'io', { bandwidth: 'auto' })
  assert.equal(rig.go().length, 4, 'four at a time take 20 ms, one at a time 40')
  assert.deepEqual(rig.of('trial'), [], 'what is known is not learned again')
})

test('learning should be alone on its device, and others should start there again after it', () => {
  const rig = new IoRig({
    nodes: [{ storage: [device('disk', 100)] }, { storage: [device('other', 50)] }],
    ioExecutors: 4,
    learning: 'paper',
  })
  rig.write('plain', { device: 'disk' })
  const [plain] = rig.go() as [Task]
  rig.many(20, 'auto', { bandwidth: 'auto', device: 'disk' })
  rig.many(3, 'static', { bandwidth: 10 * MB, device: 'disk' })
  rig.write('elsewhere', { bandwidth: 10 * MB, device: 'other' })
  assert.deepEqual(
    rig.go().map(task => task.kind.name),
    ['elsewhere'],
    'the device has to be empty first, and nothing may start there meanwhile',
  )
  rig.finish(plain)
  const disk = rig.device('disk')
  let mixed = 0
  let statics = 0
  for (let group = rig.go(); group.length > 0 || rig.engine.readyCount > 0; group = rig.go()) {
    const kinds = new Set([...disk.running].map(task => task.kind.name))
    if (disk.learner?.isLearning && kinds.size > 1) mixed++
    statics += group.filter(task => task.kind.name === 'static').length
    const [task] = disk.running
    if (!task) break
    rig.finish(task, rig.now + disk.running.size)
  }
  assert.equal(mixed, 0)
  assert.equal(statics, 3)
  assert.equal(rig.engine.readyCount, 0)
})

test('several kinds should learn on one device by turns, each alone, and on several at one time', () => {
  const rig = new IoRig({
    nodes: ['a', 'b'].map(name => ({ storage: [device(name, 64)] })),
    learning: 'paper',
  })
  const bounds = { min: 8 * MB, max: 64 * MB, delta: 2 }
  for (const name of ['x', 'y']) rig.many(60, name, { bandwidth: bounds, device: 'a' })
  rig.many(60, 'z', { bandwidth: bounds, device: 'b' })
  const storage = new FakeStorage(rig, seeking(64, 2, 0.2), 1 * MB)
  let together = 0
  storage.run(() => {
    const [a, b] = [rig.device('a'), rig.device('b')]
    if (a.learner?.isLearning && b.learner?.isLearning) together++
    if (a.learner?.isLearning) assert.equal(new Set([...a.running].map(({ kind }) => kind)).size, 1)
    return false
  })
  assert(together > 0, 'both devices were learned on at one time')
  const order = rig.of('trial').filter(({ device: index }) => index === rig.device('a').index)
  assert.deepEqual(
    order.slice(0, 4).map(({ kind }) => kind === order[0]?.kind),
    [true, false, true, false],
  )
  assert.equal(rig.engine.readyCount, 0)
})

for (const [name, speed, best] of [
  ['a fair device', fair(60), null],
  ['a disk that is best with 8', seeking(60, 8, 0.15), [6, 12]],
  ['a disk that is best with 1', seeking(60, 1, 0.1), [1, 1]],
  ['a device that needs 40', seeking(60, 40, 0.05), [20, 64]],
] as const) {
  test(`given 500 tasks on ${name}, learning should end near the best limit`, () => {
    const time = (wishes: object, options: object = {}): [number, IoRig] => {
      const rig = new IoRig({ storage: [device('disk', 60)], ioExecutors: 64, ...options })
      rig.many(500, 'io', wishes)
      new FakeStorage(rig, speed, 2 * MB).run()
      assert.equal(rig.engine.readyCount, 0)
      return [rig.now, rig]
    }
    const [auto, rig] = time({ bandwidth: 'auto' })
    const sweep = [1, 2, 4, 8, 16, 32, 64].map(k => time({ bandwidth: (60 * MB) / k })[0])
    const limit = best ? 1.1 : 1.02
    assert(
      auto <= Math.min(...sweep) * (best?.[0] === 20 ? 1.45 : limit),
      `${auto} against ${sweep.join(', ')}`,
    )
    if (best) {
      const settled = rig.of('verdict').at(-1)?.concurrency ?? 0
      assert(settled >= best[0] && settled <= best[1], `${settled} at a time`)
    }
  })
}

test('given a learner whose tasks cannot start, the device should not stay closed to others', () => {
  const rig = new IoRig({
    storage: [device('disk', 100, { capacity: 10 })],
    learning: 'paper',
    ioExecutors: 4,
  })
  const big = rig.file()
  rig.write('fill', { size: 10 }, {}, big)
  const [fill] = rig.go() as [Task]
  rig.finish(fill, 1, 10)
  rig.many(8, 'auto', { bandwidth: 'auto', size: 5 })
  const reader = rig.read('reader', {}, big)
  assert.deepEqual(rig.go(), [reader], 'only the reader can make room')
  rig.engine.remove(big, rig.now)
  rig.finish(reader)
  assert.deepEqual(rig.go(), [])
  rig.engine.io.gone(fill.accesses[0]?.write as never)
  assert.equal(rig.go().length, 2)
})
