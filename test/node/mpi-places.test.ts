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
  isCollective:
    call !== null && !['send', 'recv', 'wait', 'probe', 'readAt', 'writeAt', 'sendrecv'].includes(call),
  comm: 1,
  size: 2,
  sequence: 1,
  calls: 1,
  peer: -1,
  tag: -1,
  awaits: null,
  sending: 0,
  receiving: 0,
  rank,
  where: `p.ts:${rank}`,
  ...rest,
})
const nobody = new Set<number>()
/** What is certain from the calls alone. */
const certain = (places: Place[], ended: ReadonlySet<number> = nobody): string | null => {
  const found = standstill(places, ended)
  return found?.isCertain ? found.why : null
}

test('ranks that are all in the same collective call may go on', () => {
  assert.equal(certain([place(0, 'barrier'), place(1, 'barrier')]), null)
  assert.equal(certain([place(0, 'barrier'), place(1, null)]), null)
  assert.equal(certain([place(0, 'send', { peer: 1 }), place(1, 'recv')]), null)
  assert.equal(certain([place(0, 'writeAt'), place(1, 'barrier')]), null)
})

test('ranks that wait for each other are named with where they are', () => {
  const both = certain([place(0, 'recv', { peer: 1 }), place(1, 'recv', { peer: 0 })])
  assert.equal(
    both,
    'no rank can go on: rank 0 is in recv from rank 1 (p.ts:0); rank 1 is in recv from rank 0 (p.ts:1)',
  )
  const different = certain([place(0, 'barrier'), place(1, 'barrier', { sequence: 2 })])
  assert.match(
    different ?? '',
    /rank 0 is in barrier, its collective call 1 .*rank 1 is in barrier, its collective call 2/,
  )
})

test('a rank that has ended keeps the others from a collective call', () => {
  const why = certain([place(0, 'bcast'), place(1, null)], new Set([1]))
  assert.match(why ?? '', /^rank 1 ended while others wait: rank 0 is in bcast/)
  // Of a part of the ranks it need not be a member.
  assert.equal(certain([place(0, 'bcast', { comm: 7, size: 1 }), place(1, null)], new Set([1])), null)
})

test('messages meet by rank and tag', () => {
  const large = (tag: number): Place => place(0, 'send', { peer: 1, tag: 3, ...(tag < 0 && { tag }) })
  assert.equal(certain([large(3), place(1, 'recv', { peer: 0, tag: 3 })]), null)
  assert.equal(certain([large(3), place(1, 'recv', { peer: 0 })]), null)
  assert.match(
    certain([large(3), place(1, 'recv', { peer: 0, tag: 4 })]) ?? '',
    /rank 0 is in send to rank 1 with tag 3 .*rank 1 is in recv from rank 0 with tag 4/,
  )
  // Rank 2 sends to itself only.
  const three = [place(0, 'recv', { peer: 1 }), place(1, 'recv', { peer: 2 }), place(2, 'send', { peer: 0 })]
  assert.match(certain(three) ?? '', /^no rank can go on/)
  // Who is in a part of the ranks is not known.
  const apart = [place(0, 'send', { comm: 9, peer: 0 }), place(1, 'recv', { comm: 9, peer: 0 })]
  assert.equal(certain(apart), null)
})

test('what has begun may still be on its way: then only time tells', () => {
  const waits = place(0, 'wait', { awaits: 'recv', peer: 1, receiving: 1 })
  assert.match(certain([waits, place(1, 'barrier')]) ?? '', /rank 0 is in wait of irecv from rank 1/)
  const sent = standstill([waits, place(1, 'barrier', { sending: 1 })], nobody)
  assert.equal(sent?.isCertain, false)
  assert.equal(standstill([waits, place(1, 'writeAtAll')], nobody), null)
  const begun = place(0, 'wait', { awaits: 'iallreduce' })
  assert.equal(standstill([begun, place(1, 'barrier')], nobody)?.isCertain, false)
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
    [{ processes: 4, perNode: 0.5 }, /perNode is 0.5/],
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
      {
        type: 'ended',
        id: 1,
        attempt: 1,
        rank: 0,
        ok: true,
        isReleased: false,
        blobs: [{ size: 2 }, { given: 0 }],
        record: 3,
      },
      [Buffer.from('abc'), Buffer.from('de')],
    ),
    frame({ type: 'refused', reason: '' }),
  ])
  for (const byte of bytes) reader.take(Buffer.from([byte]))
  reader.take(bytes)
  const once = ['refused ', 'ended abcde', 'refused ']
  assert.deepEqual(seen, [...once, ...once])
})
