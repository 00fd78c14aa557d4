import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Clock } from '../../src/simulate/clock.ts'
import { ModelDevice } from '../../src/simulate/machine/device.ts'
import type { Way } from '../../src/simulate/machine/device.ts'
import type { DeviceModel } from '../../src/simulate/machine/platform.ts'

type Transfer = [way: Way, bytes: number]

/** Seconds at which each transfer is done, when all begin together; and when all is quiet. */
function play(model: Partial<DeviceModel>, transfers: readonly Transfer[]): [ends: number[], quiet: number] {
  const clock = new Clock()
  const base = { name: 'disk', path: '/disk', read: 100, write: 50, capacity: null }
  const device = new ModelDevice(clock, { ...base, ...model }, 0)
  const ends: number[] = []
  for (const [i, [way, bytes]] of transfers.entries()) {
    device.transfer(way, bytes, { ring: now => (ends[i] = now / 1000) })
  }
  while (clock.step());
  return [ends, clock.now / 1000]
}

const near = (actual: number | undefined, expected: number): void =>
  assert(Math.abs((actual ?? NaN) - expected) <= 1e-6 * Math.max(1, expected), `${actual}, not ${expected}`)

test('reading and writing take their times side by side, or one after the other where there is one arm', () => {
  const both: Transfer[] = [
    ['read', 1000],
    ['write', 500],
  ]
  const [apart] = play({}, both)
  near(apart[0], 10)
  near(apart[1], 10)
  const [together] = play({ oneArm: true }, both)
  near(together[0], 20)
  near(together[1], 20)
  near(play({ oneArm: true }, [['read', 1000]])[0][0], 10)
})

test('a write waits at its end for the others, with the cube of their number', () => {
  const alone = play({ knee: 2, sync: 8000 }, [['write', 50]])[0]
  near(alone[0], 1 + 8 / 8)
  const [pair] = play({ knee: 2, sync: 8000 }, [
    ['write', 50],
    ['write', 50],
  ])
  near(pair[0], 2 + 8)
  near(play({ knee: 2, sync: 8000 }, [['read', 100]])[0][0], 1)
})

test('writes go on while memory takes them, and at the pace of the disk when it is full', () => {
  const [ends, quiet] = play({ buffer: 100, stream: 1000 }, [
    ['write', 100],
    ['write', 100],
    ['write', 500],
  ])
  near(ends[0], 0.1)
  near(ends[1], 2 + 0.1)
  near(ends[2], 4 + 0.5)
  near(quiet, 14)
})

test('whatever the model, all transfers end, none before its bytes could be moved by an idle device', () => {
  const transfer = fc.tuple(fc.constantFrom<Way>('read', 'write'), fc.integer({ min: 1, max: 1000 }))
  const model = fc.record(
    {
      oneArm: fc.boolean(),
      buffer: fc.integer({ min: 1, max: 2000 }),
      sync: fc.integer({ min: 0, max: 100 }),
      knee: fc.integer({ min: 1, max: 8 }),
      falloff: fc.double({ min: 0, max: 2, noNaN: true }),
      stream: fc.integer({ min: 10, max: 200 }),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(model, fc.array(transfer, { minLength: 1, maxLength: 20 }), (about, transfers) => {
      const [ends, quiet] = play(about, transfers)
      assert.equal(ends.filter(end => end >= 0).length, transfers.length)
      const least = (way: Way): number =>
        transfers.reduce((sum, [one, bytes]) => sum + (one === way ? bytes : 0), 0) /
        (way === 'read' ? 100 : 50)
      const work = about.oneArm ? least('read') + least('write') : Math.max(least('read'), least('write'))
      assert(quiet >= work - 1e-6, `${quiet} s for ${work} s of work`)
    }),
    { numRuns: 200 },
  )
})
