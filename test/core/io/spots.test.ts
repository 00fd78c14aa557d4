import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LeastTree } from '../../../src/core/io/least-tree.ts'
import type { Amounts } from '../../../src/core/io/least-tree.ts'
import { Deque } from '../../../src/general/deque.ts'
import type { Storage } from '../../../src/core/io/storage.ts'
import type { Device } from '../../../src/core/io/device.ts'
import { Datum } from '../../../src/core/data/datum.ts'
import type { Version } from '../../../src/core/data/datum.ts'
import { Engine } from '../../../src/core/engine.ts'
import type { NodeDescription } from '../../../src/core/schedule/machine.ts'
import { demandOf, ioDemandOf } from '../../../src/core/tasks/demand.ts'
import { kindOf } from '../rig.ts'
import { deviceOf } from './random-machine.ts'

const amount = fc.integer({ min: 0, max: 4 })
const amounts: fc.Arbitrary<Amounts> = fc.record({
  read: amount,
  write: amount,
  room: amount,
  tasks: amount,
})

test('given places that change at random, the least one with enough is the one that a look at all of them finds', () => {
  const step = fc.record({
    place: fc.nat(40),
    key: fc.constantFrom(0, 1, 2, 3, Infinity),
    has: amounts,
    wish: amounts,
    refused: fc.array(fc.nat(40), { maxLength: 10 }),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 41 }), fc.array(step, { maxLength: 80 }), (count, steps) => {
      const tree = new LeastTree(count)
      const places = Array.from({ length: count }, () => ({
        key: Infinity,
        has: { read: 0, write: 0, room: 0, tasks: 0 },
      }))
      for (const { place, key, has, wish, refused } of steps) {
        places[place % count] = { key, has }
        tree.update(place % count, key, has)
        const fitting = [...places.entries()].filter(
          ([i, one]) =>
            one.key < Infinity &&
            !refused.includes(i) &&
            one.has.read >= wish.read &&
            one.has.write >= wish.write &&
            one.has.room >= wish.room &&
            one.has.tasks >= wish.tasks,
        )
        const expected = fitting.sort(([i, a], [j, b]) => a.key - b.key || i - j)[0]?.[0] ?? -1
        assert.equal(
          tree.least(wish, i => !refused.includes(i)),
          expected,
        )
      }
    }),
  )
})

const nodeOf = fc.record({
  ssd: fc.boolean(),
  nvram: fc.boolean(),
  pfs: fc.boolean(),
  bus: fc.constantFrom(null, null, 12),
  ioExecutors: fc.integer({ min: 1, max: 3 }),
  tags: fc.constantFrom([], ['gpu']),
})
const callOf = fc.record({
  bandwidth: fc.constantFrom(null, 0, 3, 5, 10, 'adaptive' as const),
  size: fc.constantFrom(0, 5, 20),
  memory: fc.constantFrom(0, 0, 4),
  tagged: fc.nat(5).map(n => n === 0),
  device: fc.constantFrom(null, null, null, 'ssd', 'pfs'),
  files: fc.nat(4).map(n => n > 0),
  read: fc.nat(3).map(n => n === 0),
  ends: fc.nat(3),
  reads: fc.nat(3).map(n => n === 0),
  goes: fc.nat(2).map(n => n === 0),
  breaks: fc.nat(30).map(n => n === 0),
  compute: fc.nat(4).map(n => n === 0),
})

test('with many nodes, the place of an I/O task is the one that a look at each node finds', () => {
  fc.assert(
    fc.property(
      fc.array(nodeOf, { minLength: 17, maxLength: 24 }),
      fc.array(callOf, { minLength: 30, maxLength: 80, size: 'max' }),
      (given, calls) => {
        const nodes = given.map(({ ssd, nvram, pfs, bus, ioExecutors, tags }, i): NodeDescription => {
          return {
            name: `n${i}`,
            cpus: 2,
            memory: 8,
            tags,
            ioExecutors,
            ...(bus === null ? {} : { bandwidth: { read: bus, write: bus } }),
            storage: [
              ...(nvram ? [deviceOf('nvram', 20, 30)] : []),
              ...(ssd ? [deviceOf('ssd', 10, 60)] : []),
              ...(pfs ? [deviceOf('pfs', 15, 1e6, true)] : []),
            ],
          }
        })
        const engine = new Engine({ nodes, learningShare: 0.1 })
        const { storage } = engine.io
        compareFinds(storage)
        const kind = kindOf('save')
        const running: ReturnType<Engine['submit']>[] = []
        const written: Datum[] = []
        const lying: Version[] = []
        let now = 0
        for (const [i, call] of calls.entries()) {
          const { bandwidth, size, memory, tagged, device, files, read, ends, breaks, compute, reads, goes } =
            call
          const file = new Datum(`/f${i}`, false, false)
          const source = read ? written.at(-1) : undefined
          const demand = compute
            ? demandOf(1, memory, [])
            : ioDemandOf(
                { bandwidth, direction: reads ? 'read' : 'write', size, device },
                0,
                memory,
                tagged ? ['gpu'] : [],
              )
          try {
            engine.submit(
              { kind, group: engine.root, demand, payload: null },
              [
                ...(source ? [{ datum: source, mode: 'in' as const }] : []),
                ...(files ? [{ datum: file, mode: 'out' as const }] : []),
              ],
              now,
            )
          } catch {
            // No device here could ever do it.
            continue
          }
          written.push(file)
          const begin = (): void => {
            for (const one of engine.decide(now)) {
              if (one.type !== 'start') continue
              engine.started(one.task, now)
              running.push(one.task)
            }
          }
          begin()
          for (let n = 0; n < ends; n++) {
            const [task] = running.splice((i * 7) % Math.max(1, running.length), 1)
            if (!task) break
            now++
            for (const { write } of task.accesses) {
              if (!write) continue
              engine.io.stored(write, 8)
              lying.push(write)
            }
            engine.finished(task, now)
            begin()
          }
          const gone = goes ? lying.splice(i % Math.max(1, lying.length), 1)[0] : undefined
          if (gone) engine.io.gone(gone)
          const broken = storage.devices[i % Math.max(1, storage.devices.length)]
          if (breaks && broken) engine.io.fail(broken, 'gone', now)
        }
      },
    ),
    { numRuns: 150 },
  )
})

/** Every search for a place is made both ways. */
function compareFinds(storage: Storage): void {
  const find = storage.find.bind(storage)
  storage.find = (task, io, only, avoid) => {
    const found = find(task, io, only, avoid)
    if (only) return found
    const home = io.home === null ? null : storage.find(task, io, storage.nodes[io.home], avoid)
    const isHome = home && (home.device || !io.needsDevice)
    const expected = isHome ? home : storage.findAmong(storage.nodes, task, io, avoid)
    const describe = (spot: typeof found) =>
      spot && { node: spot.node.node.name, device: nameOf(spot.device), bandwidth: spot.bandwidth }
    assert.deepEqual(describe(found), describe(expected))
    return found
  }
}

const nameOf = (device: Device | null): string | null => device && `${device.name} ${device.node}`

for (const bandwidth of ['adaptive', 'auto'] as const) {
  test(`on many nodes few devices are asked where a task with the limit '${bandwidth}' may start`, () => {
    const COUNT = 400
    const nodes = Array.from({ length: COUNT }, (_, i): NodeDescription => {
      return {
        name: `n${i}`,
        cpus: 2,
        memory: 8,
        tags: [],
        ioExecutors: 4,
        storage: [deviceOf('ssd', 10, 1e9)],
      }
    })
    const engine = new Engine({ nodes, learningShare: 0.1 })
    const { limits } = engine.io
    const ask = limits.for.bind(limits)
    let asked = 0
    limits.for = (...given) => {
      asked++
      return ask(...given)
    }
    const kind = kindOf('save')
    const demand = ioDemandOf({ bandwidth, direction: 'write', size: 1, device: null })
    const running = new Deque<ReturnType<Engine['submit']>>()
    let [now, started] = [0, 0]
    const begin = (): void => {
      for (const one of engine.decide(now)) {
        if (one.type !== 'start') continue
        engine.started(one.task, now)
        running.push(one.task)
        started++
      }
    }
    for (let i = 0; i < 10 * COUNT; i++) {
      const accesses = [{ datum: new Datum(`/f${i}`, false, false), mode: 'out' as const }]
      engine.submit({ kind, group: engine.root, demand, payload: null }, accesses, now)
    }
    begin()
    for (let task = running.shift(); task; task = running.shift()) {
      now += 5
      engine.finished(task, now)
      // While something is being learned each device may be asked whether it can help.
      if (started < 5 * COUNT) {
        begin()
        if (started >= 5 * COUNT) asked = 0
      } else begin()
    }
    started -= 5 * COUNT
    assert(started > COUNT, `${started} started`)
    assert(asked < 20 * started, `${asked} devices were asked for ${started} tasks`)
  })
}
