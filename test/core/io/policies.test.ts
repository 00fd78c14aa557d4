import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'node:test'
import { findIoPolicy } from '../../../src/core/io/io-policy.ts'
import type { Task } from '../../../src/core/tasks/task.ts'
import { fails } from '../rig.ts'
import { IoRig, MB, device, devicesOf } from './io-rig.ts'

const names = (tasks: readonly Task[]): string[] => tasks.map(task => task.kind.name)

const three = [
  device('pfs', 10, { capacity: 10_000 }),
  device('nvme', 60, { capacity: 100 }),
  device('ssd', 30, { capacity: 200 }),
]

test('layers should be ordered by bandwidth, and among equals the smaller device should be higher', () => {
  const rig = new IoRig({
    storage: [device('b', 50, { capacity: 20 }), device('x', 50, { capacity: 10 }), device('fast', 80)],
  })
  const ranked = [...rig.engine.io.devices].sort((a, b) => a.rank - b.rank)
  assert.deepEqual(
    ranked.map(({ name }) => name),
    ['fast', 'x', 'b'],
  )
})

test('Algorithm 1: a task should go to the highest layer that has bandwidth and room for it', () => {
  const rig = new IoRig({ storage: three })
  rig.many(3, 'a', { size: 50, bandwidth: 10 * MB })
  rig.many(2, 'b', { size: 50, bandwidth: 20 * MB })
  rig.many(1, 'c', { size: 50, bandwidth: 10 * MB })
  rig.many(1, 'd', { size: 50, bandwidth: 5 * MB })
  // nvme has room for two; ssd has bandwidth for 10 and 20; then only pfs is left.
  assert.deepEqual(devicesOf(rig.go()), ['nvme', 'nvme', 'ssd', 'ssd', 'pfs'])
})

test('Algorithm 1: of several nodes, the one with the higher layer should be taken', () => {
  const rig = new IoRig({ nodes: [{ storage: [three[2]!] }, { storage: [three[1]!, three[0]!] }] })
  rig.many(3, 'a', { size: 50 })
  assert.deepEqual(
    rig.go().map(task => [task.node, task.io?.device?.name]),
    [
      [1, 'nvme'],
      [1, 'nvme'],
      [0, 'ssd'],
    ],
  )
})

test('fcfs: who does not fit should wait while those behind it start', () => {
  const rig = new IoRig({ storage: [device('disk', 100)] })
  rig.write('first', { bandwidth: 80 * MB })
  rig.write('large', { bandwidth: 60 * MB })
  rig.write('small', { bandwidth: 20 * MB })
  assert.deepEqual(names(rig.go()), ['first', 'small'])
})

test('fcfs: a large task should not be passed for ever', () => {
  const rig = new IoRig({ storage: [device('disk', 100)] })
  rig.many(10, 'small', { bandwidth: 10 * MB })
  const running = rig.go()
  const large = rig.write('large', { bandwidth: 100 * MB })
  let passed = 0
  while (large.state !== 'running' && passed < 100) {
    rig.many(1, 'small', { bandwidth: 10 * MB })
    const task = running.shift()
    if (task) rig.finish(task)
    const started = rig.go()
    passed += started.filter(one => one !== large).length
    running.push(...started)
  }
  assert.equal(large.state, 'running')
  assert(passed <= 16, `${passed} tasks went past it`)
})

/** The storage of the paper's figures 5.6 and 5.7: two red tasks or four blue ones at one time. */
function redAndBlue(ioPolicy: string): { rig: IoRig; order: string[] } {
  const rig = new IoRig({ storage: [device('disk', 40)], ioPolicy })
  rig.many(6, 'blue', { bandwidth: 10 * MB })
  rig.many(4, 'red', { bandwidth: 20 * MB })
  return { rig, order: [] }
}

test('priority: tasks should start strictly in order of bandwidth (figure 5.6)', () => {
  const { rig } = redAndBlue('priority')
  const first = rig.go()
  assert.deepEqual(names(first), ['red', 'red'])
  rig.finish(first[0] as Task)
  assert.deepEqual(names(rig.go()), ['red'])
  rig.finish(first[1] as Task)
  const fourth = rig.go()
  assert.deepEqual(names(fourth), ['red'])
  rig.finish(fourth[0] as Task)
  assert.deepEqual(names(rig.go()), ['blue', 'blue'])
})

test('priority: nothing should overtake the first, although it would fit', () => {
  const rig = new IoRig({ storage: [device('disk', 50)], ioPolicy: 'priority' })
  rig.many(2, 'red', { bandwidth: 30 * MB })
  rig.many(2, 'blue', { bandwidth: 10 * MB })
  assert.deepEqual(names(rig.go()), ['red'])
})

test('priority: a task that only others can make room for should not stop them', () => {
  const rig = new IoRig({ storage: [device('disk', 50, { capacity: 10 })], ioPolicy: 'priority' })
  const file = rig.file()
  rig.write('fill', { size: 10 }, {}, file)
  const [fill] = rig.go() as [Task]
  rig.finish(fill, 1, 10)
  rig.write('red', { bandwidth: 30 * MB, size: 5 })
  rig.read('reader', { bandwidth: 10 * MB }, file)
  assert.deepEqual(names(rig.go()), ['reader'])
})

/** Two layers on which tasks of the kind have taken `high` and `low` milliseconds, the higher one busy. */
function twoLayers(ioPolicy: string, high: number, low: number): { rig: IoRig; busy: Task } {
  const rig = new IoRig({ storage: [device('high', 20), device('low', 10)], ioPolicy })
  for (const [where, took] of [
    ['high', high],
    ['low', low],
  ] as const) {
    rig.write('io', { bandwidth: 10 * MB, device: where })
    const [task] = rig.go() as [Task]
    rig.finish(task, rig.now + took)
  }
  rig.many(2, 'io', { bandwidth: 10 * MB, device: 'high' })
  const [busy] = rig.go() as [Task]
  return { rig, busy }
}

test('Algorithm 4: a task should wait for a higher layer exactly if waiting and running there is quicker', () => {
  // The first on the high layer has 100 ms left; there a task takes 100, below 201 or 200.
  for (const [low, waits] of [
    [201, true],
    [200, false],
  ] as const) {
    const { rig } = twoLayers('priority', 100, low)
    rig.write('io', { bandwidth: 10 * MB })
    assert.equal(rig.go().length, waits ? 0 : 1, `with ${low} ms on the lower layer`)
  }
})

test('Algorithm 4: what is left of a running task should be its mean minus the time that it has run', () => {
  const { rig } = twoLayers('priority', 100, 150)
  const task = rig.write('io', { bandwidth: 10 * MB })
  rig.now += 49
  const late = rig.go()
  assert.deepEqual(devicesOf(late), ['low'], '51 ms to wait and 100 to run are more than 150')
  rig.finish(late[0] as Task, rig.now + 1)
  assert.equal(task.state, 'done')
  const { rig: other } = twoLayers('priority', 100, 150)
  other.write('io', { bandwidth: 10 * MB })
  other.now += 51
  assert.deepEqual(other.go(), [], '49 ms to wait and 100 to run are less')
})

test('Algorithm 5: others should pass the one that waits only if they end before it can start', () => {
  for (const [took, passes] of [
    [90, true],
    [110, false],
  ] as const) {
    const rig = new IoRig({ storage: [device('disk', 50)], ioPolicy: 'backfill' })
    for (const [name, time] of [
      ['red', 100],
      ['blue', took],
    ] as const) {
      rig.write(name, { bandwidth: 10 * MB })
      const [task] = rig.go() as [Task]
      rig.finish(task, rig.now + time)
    }
    rig.many(2, 'red', { bandwidth: 30 * MB })
    rig.write('blue', { bandwidth: 10 * MB })
    const started = names(rig.go())
    assert.deepEqual(started, passes ? ['red', 'blue'] : ['red'])
  }
})

test('Algorithm 5: while nothing is known of what runs, no task should overtake; when nothing runs, all may', () => {
  const rig = new IoRig({ storage: [device('disk', 50, { capacity: 10 })], ioPolicy: 'backfill' })
  rig.many(2, 'red', { bandwidth: 30 * MB })
  rig.write('blue', { bandwidth: 10 * MB })
  const [red] = rig.go() as [Task]
  assert.equal(rig.device('disk').running.size, 1)
  rig.finish(red, 10, 10)
  rig.write('wide', { bandwidth: 50 * MB, size: 5 })
  assert.deepEqual(names(rig.go()).sort(), ['blue'], 'no room for the wide one, and nothing that would end')
})

for (const ioPolicy of ['priority', 'backfill']) {
  test(`${ioPolicy}: the user's priority should come before bandwidth, and not as the paper has it`, () => {
    for (const isPaper of [false, true]) {
      const policy = isPaper ? `${ioPolicy}-paper` : ioPolicy
      const rig = new IoRig({ storage: [device('disk', 30)], ioPolicy: policy })
      rig.write('wide', { bandwidth: 30 * MB })
      rig.write('urgent', { bandwidth: 20 * MB }, { priority: 1 })
      assert.deepEqual(names(rig.go()), [isPaper ? 'wide' : 'urgent'], policy)
    }
  })
}

test('backfill: what goes past may use a lower layer, and not as the paper has it', () => {
  for (const ioPolicy of ['backfill', 'backfill-paper']) {
    const rig = new IoRig({ storage: [device('high', 50), device('low', 20)], ioPolicy })
    // A blue task takes longer than a red one on the high layer, and less on the low one.
    for (const [name, where, took] of [
      ['red', 'high', 100],
      ['blue', 'high', 110],
      ['blue', 'low', 50],
    ] as const) {
      rig.write(name, { bandwidth: 10 * MB, device: where })
      const [task] = rig.go() as [Task]
      rig.finish(task, rig.now + took)
    }
    rig.many(2, 'red', { bandwidth: 30 * MB, device: 'high' })
    rig.write('blue', { bandwidth: 10 * MB })
    const started = rig.go()
    assert.deepEqual(devicesOf(started), ioPolicy === 'backfill' ? ['high', 'low'] : ['high'], ioPolicy)
  }
})

for (const ioPolicy of ['priority', 'backfill', 'priority-paper', 'backfill-paper']) {
  test(`${ioPolicy}: a task overtaken 256 times should go next`, () => {
    const rig = new IoRig({ storage: [device('disk', 50)], ioPolicy })
    rig.many(1, 'red', { bandwidth: 50 * MB })
    const running = rig.go()
    const blue = rig.write('blue', { bandwidth: 10 * MB })
    let passed = 0
    while (blue.state !== 'running' && passed < 1000) {
      rig.many(1, 'red', { bandwidth: 50 * MB })
      rig.finish(running.shift() as Task)
      const started = rig.go()
      passed += started.filter(one => one !== blue).length
      running.push(...started)
    }
    assert.equal(blue.state, 'running')
    assert(passed >= 250 && passed <= 257, `${passed} tasks went past it`)
  })
}

test('fcfs: members of a team that wait for each other should not be counted as ready', () => {
  const rig = new IoRig({ storage: [device('disk', 50)] })
  const file = rig.file()
  for (let i = 0; i < 3; i++) rig.submit('append', {}, [{ datum: file, mode: 'commutative' }])
  for (let i = 0; i < 3; i++) {
    const started = rig.go()
    assert.equal(started.length, 1, 'one at a time')
    rig.finish(started[0] as Task)
  }
  assert.deepEqual(rig.go(), [])
  assert.equal(rig.engine.readyCount, 0)
  assert.equal(rig.engine.io.queue.filled.size, 0)
})

test('an I/O policy that does not exist should be named, with the nearest that does', () => {
  assert.throws(() => findIoPolicy('backfil'), fails('MR_POLICY', 'backfil', 'backfill'))
})

test('with priority, a task that fits on a lower layer should wait for a higher one no longer than its time below', () => {
  const times = fc.record({ top: fc.integer({ min: 1, max: 40 }), low: fc.integer({ min: 1, max: 200 }) })
  fc.assert(
    fc.property(fc.array(times, { minLength: 3, maxLength: 15 }), fc.boolean(), (all, isStuck) => {
      const rig = new IoRig({ storage: [device('top', 70), device('low', 60)], ioPolicy: 'priority' })
      const tasks = all.map(() => rig.write('w', { bandwidth: 50 * MB, size: 1 }))
      const ends = new Map<Task, number>()
      const since = new Map<Task, number>()
      let longest = 0
      const low = rig.device('low')
      for (; tasks.some(({ ended }) => !ended); rig.now++) {
        for (const [task, at] of ends) {
          if (at > rig.now) continue
          ends.delete(task)
          longest = Math.max(longest, rig.now - (task.io?.startedAt ?? 0))
          rig.finish(task, rig.now, 1)
        }
        for (const task of rig.go()) {
          const one = all[tasks.indexOf(task)] as { top: number; low: number }
          // One overruns all that is known of the others.
          const isEndless = isStuck && tasks.indexOf(task) === 3 && task.io?.device !== low
          ends.set(task, rig.now + (isEndless ? 10_000 : task.io?.device === low ? one.low : one.top))
        }
        for (const task of tasks) {
          if (task.state !== 'ready' || low.running.size > 0) since.delete(task)
          else if (!since.has(task)) since.set(task, rig.now)
        }
        for (const at of since.values()) {
          assert(rig.now - at <= 2 * Math.max(longest, 200), `idle for ${rig.now - at} ms`)
        }
      }
    }),
    { numRuns: 60 },
  )
})

test('equal devices of one node should be one layer, and share the work', () => {
  const rig = new IoRig({ storage: [device('a', 60), device('b', 60), device('pfs', 10)], flush: 'always' })
  for (let i = 0; i < 4; i++) rig.write('w', { bandwidth: 10 * MB, size: 1 })
  assert.deepEqual(devicesOf(rig.go()), ['a', 'b', 'a', 'b'])
  assert.equal(rig.device('a').rank, rig.device('b').rank)
})
