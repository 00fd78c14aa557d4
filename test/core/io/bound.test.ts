import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'node:test'
import { Profile } from '../../../src/core/io/profile.ts'
import type { Datum } from '../../../src/core/data/datum.ts'
import { ioDemandOf } from '../../../src/core/tasks/demand.ts'
import type { Task } from '../../../src/core/tasks/task.ts'
import { fails } from '../rig.ts'
import { IoRig, device } from './io-rig.ts'
import type { IoRigOptions } from './io-rig.ts'

const rigWith = (options: IoRigOptions): IoRig => new IoRig({ storage: [device('disk', 100)], ...options })

const names = (tasks: readonly Task[]): string[] => tasks.map(task => task.kind.name)

function temporary(rig: IoRig): Datum {
  const file = rig.file()
  file.temporary = true
  return file
}

test('the peak of a profile should be that of a plain sum, whatever is set and cleared', () => {
  const change = fc.record({ at: fc.nat(200), taken: fc.nat(20), given: fc.nat(20), clear: fc.boolean() })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 80 }), changes => {
      const profile = new Profile()
      const plain = new Map<number, { taken: number; given: number }>()
      let next = 0
      for (const { at, taken, given, clear } of changes) {
        // Positions come in order, and only those that are there are cleared.
        const position = clear ? at % (next + 1) : next++
        if (clear) {
          plain.delete(position)
          profile.clear(position)
        } else {
          plain.set(position, { taken, given })
          profile.set(position, taken, given)
        }
        const end = at % (next + 2)
        let sum = 0
        let peak = -Infinity
        for (const [i, one] of [...plain].sort(([a], [b]) => a - b)) {
          if (i >= end) break
          peak = Math.max(peak, sum + one.taken)
          sum += one.taken - one.given
        }
        assert.equal(profile.peakBefore(end), peak)
      }
    }),
  )
})

/** Chains of writer, copier, reader: each copier needs room while its input is still there. */
function chains(rig: IoRig, count: number, size: number): void {
  const links = Array.from({ length: count }, () => [temporary(rig), temporary(rig)] as const)
  for (const [first, second] of links) {
    rig.write('w', { size }, {}, first)
    rig.submit('c', { size }, [
      { datum: first, mode: 'in' },
      { datum: second, mode: 'out' },
    ])
    rig.read('r', {}, second)
    rig.engine.remove(first, rig.now)
    rig.engine.remove(second, rig.now)
  }
}

test('writers should be held back where their output would leave no room for those that come before', () => {
  const rig = rigWith({ maxIntermediate: 20 })
  chains(rig, 5, 10)
  assert.deepEqual(names(rig.go()), ['w'], 'a second writer would fill what the first copier needs')
})

test('chains should all end under the smallest bound that one of them needs, and use a larger one', () => {
  for (const [bound, widest] of [
    [20, 1],
    [30, 2],
    [60, 5],
  ] as const) {
    const rig = rigWith({ maxIntermediate: bound })
    chains(rig, 20, 10)
    const running: Task[] = []
    let most = 0
    for (;;) {
      running.push(...rig.go())
      most = Math.max(most, running.length)
      for (const one of rig.said.splice(0)) if (one.type === 'discard') rig.engine.io.gone(one.version)
      assert((rig.engine.io.bound?.alive ?? 0) <= bound)
      running.push(...rig.go())
      const task = running.shift()
      if (!task) break
      rig.finish(task, rig.now + 1, task.kind.name === 'r' ? undefined : 10)
    }
    assert.equal(rig.engine.root.live, 0)
    assert(most >= widest, `${most} at one time under a bound of ${bound}`)
  }
})

test('a task that is held back should not keep away one of the same demand that tasks before it need', () => {
  const rig = rigWith({ maxIntermediate: 20 })
  const demand = ioDemandOf({ size: 10 }, 1)
  const [made, first, second, third] = [rig.file(), temporary(rig), temporary(rig), temporary(rig)] as const
  rig.write('maker', {}, { demand }, made)
  rig.write('first', {}, { demand }, first)
  const uses = [made, first].map(datum => ({ datum, mode: 'in' as const }))
  rig.submit('second', {}, [...uses, { datum: second, mode: 'out' }], { demand })
  // It would go ahead, but what it takes the second needs.
  rig.write('third', {}, { demand, priority: 1 }, third)
  for (const file of [first, second, third]) rig.engine.remove(file, rig.now)
  const order: string[] = []
  for (let turn = 0; turn < 10; turn++) {
    for (const task of rig.go()) {
      order.push(task.kind.name)
      rig.finish(task)
    }
    for (const one of rig.said.splice(0)) if (one.type === 'discard') rig.engine.io.gone(one.version)
  }
  assert.deepEqual([...order].sort(), ['first', 'maker', 'second', 'third'])
})

test('a task that writes more than the bound should be refused, with both numbers', () => {
  const rig = rigWith({ maxIntermediate: 20 })
  assert.throws(
    () => rig.write('w', { size: 21 }, {}, temporary(rig)),
    fails('MR_CONSTRAINT', '21 B', '20 B'),
  )
  rig.write('w', { size: 21 })
})

test('where the size is not given, one task of the kind should go ahead, and the others count as much as it wrote', () => {
  const rig = rigWith({ maxIntermediate: 25 })
  for (let i = 0; i < 5; i++) rig.write('w', {}, {}, temporary(rig))
  const [first] = rig.go() as [Task]
  assert.deepEqual(rig.go(), [], 'nothing is known yet')
  rig.finish(first, 1, 10)
  assert.equal(rig.go().length, 1, '10 are there, 10 more fit')
})

test('where the bound cannot hold, the first task should start all the same, with a warning, when the driver says so', () => {
  const rig = rigWith({ maxIntermediate: 20 })
  const [a, b] = [temporary(rig), temporary(rig)]
  rig.write('a', { size: 15 }, {}, a)
  rig.read('r', {}, a)
  const late = rig.write('b', { size: 15 }, {}, b)
  const { standstill } = rig.engine.io
  const [first] = rig.go() as [Task]
  assert(!standstill.isThere, 'it runs')
  rig.finish(first, 1, 15)
  const [reader] = rig.go() as [Task]
  rig.finish(reader)
  assert.deepEqual(rig.go(), [], 'its reader has ended, but the program may call another')
  assert.match(rig.engine.explain(late), /temporary data take 15 B of 20 B, and it writes 15 B/)
  assert.match(rig.of('waits').at(-1)?.reason ?? '', /temporary data take 15 B of 20 B/)
  assert(standstill.isThere)
  assert.equal(rig.of('note').length, 0)
  assert(standstill.letOneGo(rig.now))
  assert.match(rig.of('note')[0]?.text ?? '', /b#3 starts beyond .*removeFile.*maxIntermediate/)
  assert.deepEqual(rig.go(), [late])
})

test('what is being deleted is no standstill, unless it cannot be deleted', () => {
  const rig = rigWith({ maxIntermediate: 20 })
  const a = temporary(rig)
  rig.write('a', { size: 15 }, {}, a)
  rig.write('b', { size: 15 }, {}, temporary(rig))
  const [first] = rig.go() as [Task]
  rig.finish(first, 1, 15)
  rig.engine.remove(a, rig.now)
  rig.go()
  const version = rig.said.find(one => one.type === 'discard')?.version
  const { io } = rig.engine
  assert(version && !io.standstill.isThere)
  io.stays(version)
  assert(io.standstill.isThere)
})

test('tasks that may use no device but one that is full should start there when nothing else will make room', () => {
  for (const cpus of [0, 1]) {
    const rig = new IoRig({ storage: [device('ssd', 100, { capacity: 25 }), device('pfs', 10)] })
    const demand = ioDemandOf({ size: 10, device: 'ssd' }, cpus)
    for (let i = 0; i < 3; i++) rig.write('w', {}, { demand })
    for (const done of [2, 3]) {
      for (let tasks = rig.go(); tasks.length > 0; tasks = rig.go()) {
        for (const task of tasks) rig.finish(task, rig.now + 1, 10)
      }
      assert.equal(3 - rig.engine.root.live, done)
      assert.equal(rig.engine.io.standstill.letOneGo(rig.now), done === 2)
    }
    assert.match(rig.of('note')[0]?.text ?? '', /ssd has no room for 10 B more/)
  }
})

test('a layer with a bound of its own should send what does not fit to the next', () => {
  const rig = rigWith({ storage: [device('fast', 100, { maxIntermediate: 20 }), device('slow', 10)] })
  for (let i = 0; i < 3; i++) rig.write('w', { size: 10 }, {}, temporary(rig))
  rig.write('kept', { size: 10 })
  assert.deepEqual(
    rig.go().map(task => task.io?.device?.name),
    ['fast', 'fast', 'slow', 'fast'],
  )
})
