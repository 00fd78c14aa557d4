import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partOf } from '../../src/model/mpi/form.ts'
import { countsOf } from '../../src/model/mpi/processes.ts'
import { mpi } from '../../src/model/mpi/mpi.ts'
import { frame, FrameReader } from '../../src/node/mpi/frames.ts'
import type { FromRank } from '../../src/node/mpi/frames.ts'
import { standstill } from '../../src/node/mpi/places.ts'
import type { Place } from '../../src/node/mpi/places.ts'

const place = (rank: number, call: Place['call'], rest: Partial<Place> = {}): Place => ({
  call,
  isCollective: call !== null && !['send', 'recv', 'wait', 'probe', 'readAt', 'writeAt'].includes(call),
  comm: 1,
  size: 2,
  sequence: 1,
  calls: 1,
  peer: -1,
  rank,
  where: `p.ts:${rank}`,
  ...rest,
})
const nobody = new Set<number>()

test('ranks that are all in the same collective call may go on', () => {
  assert.equal(standstill([place(0, 'barrier'), place(1, 'barrier')], nobody), null)
  assert.equal(standstill([place(0, 'barrier'), place(1, null)], nobody), null)
  assert.equal(standstill([place(0, 'send', { peer: 1 }), place(1, 'recv')], nobody), null)
  assert.equal(standstill([place(0, 'writeAt'), place(1, 'barrier')], nobody), null)
})

test('ranks that wait for each other are named with where they are', () => {
  const both = standstill([place(0, 'recv', { peer: 1 }), place(1, 'recv', { peer: 0 })], nobody)
  assert.equal(
    both,
    'no rank can go on: rank 0 is in recv from rank 1 (p.ts:0); rank 1 is in recv from rank 0 (p.ts:1)',
  )
  const different = standstill([place(0, 'barrier'), place(1, 'barrier', { sequence: 2 })], nobody)
  assert.match(
    different ?? '',
    /rank 0 is in barrier, its collective call 1 .*rank 1 is in barrier, its collective call 2/,
  )
})

test('a rank that has ended keeps the others from a collective call', () => {
  const why = standstill([place(0, 'bcast'), place(1, null)], new Set([1]))
  assert.match(why ?? '', /^rank 1 ended while others wait: rank 0 is in bcast/)
  // Of a part of the ranks it need not be a member.
  assert.equal(standstill([place(0, 'bcast', { comm: 7, size: 1 }), place(1, null)], new Set([1])), null)
})

test('a part of each rank: equal blocks, or blocks with a stride', () => {
  const parts = (length: number, size: number): number[][] =>
    Array.from({ length: size }, (_, rank) => partOf('block', length, rank, size))
  assert.deepEqual(parts(10, 3), [
    [0, 3],
    [3, 6],
    [6, 10],
  ])
  assert.deepEqual(parts(1, 2), [
    [0, 0],
    [0, 1],
  ])
  assert.deepEqual(partOf({ length: 3, stride: 2 }, 6, 1, 3), [2, 5])
  assert.deepEqual(partOf({ length: 3, stride: 2 }, 6, 2, 3), [4, 6])
  assert.deepEqual(partOf({ length: 3, stride: 2, count: 2 }, 6, 2, 3), [6, 6])
})

test('a range of processes is tried in powers of two', () => {
  assert.deepEqual(countsOf('t', { min: 1, max: 8 }), [1, 2, 4, 8])
  assert.deepEqual(countsOf('t', { min: 3, max: 9 }), [3, 4, 8, 9])
  assert.deepEqual(countsOf('t', { min: 2, max: 2 }), [2])
})

test('options of MPI tasks that cannot be are refused at once', () => {
  const body = (): number => 0
  const refused: [object, RegExp][] = [
    [{}, /does not say how many processes/],
    [{ processes: 0 }, /processes is '0'/],
    [{ processes: 2, cpus: 0.5 }, /cpus is 0.5/],
    [{ processes: 2, reduce: 'mean' }, /reduce is 'mean'/],
    [{ processes: 2, reduce: 'sum', root: 0 }, /more than one of/],
    [{ processes: '$N', returns: 'each' }, /needs a fixed number/],
    [{ processes: 4, perNode: 2 }, /need several nodes/],
    [{ processes: { min: 2, max: 1 } }, /from 2 to 1/],
    [{ processes: 2, io: true }, /no option 'io'/],
    [{ processes: 2, layout: { 0: 'cyclic' } }, /layout of parameter 0/],
  ]
  for (const [options, message] of refused) assert.throws(() => mpi(options as never, body), message)
})

test('frames come through in whatever pieces they arrive', () => {
  const seen: string[] = []
  const reader = new FrameReader<FromRank>((header, bytes) => seen.push(`${header.type} ${bytes.toString()}`))
  const bytes = Buffer.concat([
    frame({ type: 'refused', reason: 'ä' }),
    frame(
      { type: 'ended', id: 1, attempt: 1, rank: 0, ok: true, blobs: [{ size: 2 }, { given: 0 }], record: 3 },
      [Buffer.from('abc'), Buffer.from('de')],
    ),
    frame({ type: 'refused', reason: '' }),
  ])
  for (const byte of bytes) reader.take(Buffer.from([byte]))
  reader.take(bytes)
  const once = ['refused ', 'ended abcde', 'refused ']
  assert.deepEqual(seen, [...once, ...once])
})
