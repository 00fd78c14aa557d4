import fc from 'fast-check'
import { test } from 'node:test'
import { playIo } from './random-machine.ts'
import type { IoProgram } from './random-machine.ts'

const flag = fc.boolean()

const deviceOf = (i: number) =>
  fc.record({
    name: fc.constant(`d${i}`),
    bandwidth: fc.constantFrom(10, 20, 40, 40, null),
    capacity: fc.constantFrom(60, 100, 200),
    shared: fc.constant(false),
  })

const bandwidth = fc.constantFrom(
  null,
  null,
  2,
  5,
  10,
  'auto' as const,
  'bounded' as const,
  'adaptive' as const,
)

const call = fc.record({
  kind: fc.nat(3),
  /** So many earlier files back. */
  reads: fc.array(fc.nat(6), { maxLength: 2 }),
  writes: fc.nat(1),
  io: fc.nat(3).map(n => n > 0),
  size: fc.constantFrom(0, 3, 5, 10),
  bandwidth,
  priority: fc.constantFrom(0, 0, 0, 1),
  temporary: fc.nat(2).map(n => n > 0),
  failures: fc.constantFrom(0, 0, 0, 0, 1),
  retries: fc.constantFrom(0, 1),
  cancel: fc.nat(15).map(n => n === 0),
})

const program = (bounded: boolean): fc.Arbitrary<IoProgram> =>
  fc.record({
    seed: fc.nat(0x7fffffff),
    cpus: fc.integer({ min: 1, max: 3 }),
    ioExecutors: fc.integer({ min: 1, max: 12 }),
    nodes: fc.integer({ min: 1, max: 2 }),
    devices: fc.tuple(deviceOf(0), deviceOf(1), deviceOf(2)).chain(all => fc.subarray(all, { minLength: 1 })),
    policy: fc.constantFrom('fifo', 'fifo', 'fifo-data', 'lifo', 'lifo+hrf'),
    ioPolicy: fc.constantFrom('fcfs', 'priority', 'backfill'),
    flush: fc.constantFrom('off' as const, 'idle' as const, 'always' as const),
    prefetch: flag,
    learningShare: fc.constantFrom(0.1, 0.5, 1),
    maxIntermediate: bounded ? fc.constantFrom(20, 30, 50) : fc.constant(null),
    removes: bounded
      ? fc.constantFrom('early' as const, 'early' as const, 'at its end' as const, 'never' as const)
      : fc.constant('early' as const),
    gone: fc.constantFrom(0, 0, 0, 1, 4),
    calls: fc.array(call, { minLength: 1, maxLength: 60, size: 'max' }),
  })

test('random programs: no budget and no capacity is ever exceeded, every datum is where the graph says, all ends', () => {
  fc.assert(
    fc.property(program(false), one => {
      playIo(one)
    }),
    { numRuns: 300 },
  )
})

test('random programs under a bound: temporary data do not exceed it where it is enough, and nothing comes to a stop', () => {
  fc.assert(
    fc.property(program(true), one => {
      playIo(one)
    }),
    { numRuns: 400 },
  )
})
