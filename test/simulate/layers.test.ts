import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Datum } from '../../src/core/data/datum.ts'
import { IO_POLICIES } from '../../src/core/io/io-policy.ts'
import { demandOf, ioDemandOf } from '../../src/core/tasks/demand.ts'
import type { DeviceModel, NodeModel } from '../../src/simulate/machine/platform.ts'
import { Simulation } from '../../src/simulate/simulation.ts'

/** Upper layers that are soon full, above one with room for all. */
const layer = fc.record({
  read: fc.integer({ min: 1, max: 100 }),
  write: fc.integer({ min: 1, max: 100 }),
  capacity: fc.integer({ min: 1, max: 400 }),
  latency: fc.constantFrom(0, 3),
  oneArm: fc.boolean(),
  buffer: fc.constantFrom(0, 0, 150),
})
const nodes = fc.array(
  fc.record({
    layers: fc.array(layer, { minLength: 1, maxLength: 3 }),
    cache: fc.nat(300),
    link: fc.integer({ min: 1, max: 80 }),
    ioExecutors: fc.integer({ min: 1, max: 6 }),
  }),
  { minLength: 1, maxLength: 3 },
)
const tasks = fc.array(
  fc.record({
    compute: fc.nat(2000),
    read: fc.array(fc.nat(30), { maxLength: 3 }),
    bytes: fc.integer({ min: 1, max: 100 }),
    asks: fc.constantFrom(null, 1, 10, 'adaptive' as const, 'auto' as const),
    isIo: fc.boolean(),
  }),
  { minLength: 1, maxLength: 30 },
)

function model(given: readonly { layers: readonly Omit<DeviceModel, 'name' | 'path'>[] }[]): NodeModel[] {
  return given.map(({ layers, ...rest }, i) => {
    const upper = layers.map((one, k) => ({
      ...one,
      name: `l${k}`,
      path: `/l${k}`,
      buffer: one.buffer || undefined,
    }))
    const lowest = { name: 'low', path: '/low', read: 50, write: 20, capacity: null, shared: true }
    return {
      name: `n${i}`,
      cpus: 2,
      memory: 100,
      tags: [],
      ...rest,
      storage: [...upper, lowest],
    } as NodeModel
  })
}

test('given any layers, with flushing or without: no layer is too full or too fast, and each file ends up on one', () => {
  fc.assert(
    fc.property(
      nodes,
      tasks,
      fc.constantFrom(...IO_POLICIES),
      fc.constantFrom('off' as const, 'idle' as const, 'always' as const),
      fc.boolean(),
      (given, work, ioPolicy, flush, prefetch) => {
        let [last, moved, begun, ended] = [0, 0, 0, 0]
        const simulation = new Simulation({
          platform: { nodes: model(given) },
          ioPolicy,
          flush,
          prefetch,
          observer: event => {
            assert(event.at >= last, 'time ran backwards')
            last = event.at
            if (event.type !== 'move') return
            if (event.phase === 'started') begun++
            else ended++
            if (event.phase === 'done') moved += event.bytes
          },
        })
        const { engine, stores } = simulation
        const files: { datum: Datum; bytes: number; isIo: boolean }[] = []
        let [written, read] = [0, 0]
        for (const { compute, read: from, bytes, asks, isIo } of work) {
          const inputs = [...new Set(from.flatMap(i => files[i % Math.max(1, files.length)] ?? []))]
          const datum = new Datum(`/f${files.length}`, false, false)
          const wish = { bandwidth: asks, direction: null, size: bytes, device: null }
          simulation.submit(
            {
              kind: simulation.kind(`t${asks}`),
              demand: isIo ? ioDemandOf(wish, 0, 0, []) : demandOf(1, 0, []),
            },
            [
              ...inputs.map(one => ({ datum: one.datum, mode: 'in' as const })),
              { datum, mode: 'out' as const },
            ],
            { compute, bytes: [...inputs.map(one => one.bytes), bytes] },
          )
          files.push({ datum, bytes, isIo })
          written += bytes
          for (const one of inputs) read += one.bytes
        }
        do {
          simulation.decide()
          for (const one of stores.devices) {
            const { read: most, write, oneArm } = one.model
            const share = {
              read: one.flow('read') / (most ?? Infinity),
              write: one.flow('write') / (write ?? Infinity),
            }
            const used = oneArm ? share.read : Math.max(share.read, share.write)
            assert(used <= 1 + 1e-9, `${one.model.name} is ${used} times as fast as it can be`)
          }
          for (const { name, used, capacity } of engine.io.devices) {
            assert(used >= -1e-6 && used <= capacity + 1e-6, `${name} holds ${used} of ${capacity}`)
          }
        } while (simulation.clock.step())
        simulation.expectEnd()
        assert.equal(simulation.ended, work.length)
        assert.equal(begun, ended, 'moves that began have ended')
        const sum = (pick: (one: (typeof stores.devices)[number]) => number): number =>
          stores.devices.reduce((all, one) => all + pick(one), 0)
        assert.equal(
          sum(one => one.moved.write),
          written + moved,
        )
        const hits = stores.nodes.reduce((all, { cache }) => all + cache.hits, 0)
        const misses = stores.nodes.reduce((all, { cache }) => all + cache.misses, 0)
        assert.equal(hits + misses, read)
        assert(sum(one => one.moved.read) <= misses + moved, 'more was read than was asked for')
        // What I/O tasks wrote lies on one layer, and counts there once.
        const placed = files.filter(({ isIo }) => isIo)
        for (const { datum } of placed) assert(stores.placeOf(datum.current.id), 'a file is nowhere')
        const used = engine.io.devices.reduce((all, one) => all + one.used, 0)
        const expected = placed.reduce((all, { bytes }) => all + bytes, 0)
        assert(Math.abs(used - expected) < 1e-6, `${used} bytes are counted, not ${expected}`)
        if (flush === 'off') assert.equal(moved, 0)
      },
    ),
    { numRuns: 150 },
  )
})
