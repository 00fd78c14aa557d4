import assert from 'node:assert/strict'
import test from 'node:test'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { RingReader, RingWriter, createRing } from '../../src/node/threads/ring.ts'

interface Model {
  /** Written and not yet read or passed over. */
  records: { position: number; bytes: Uint8Array; revoked: boolean }[]
  claimed: { position: number; bytes: Uint8Array } | null
}

type Do =
  | { do: 'write'; length: number }
  | { do: 'next' }
  | { do: 'release' }
  | { do: 'revoke'; which: number }
  | { do: 'revokeOld' }
  | { do: 'hurry' }

const step: fc.Arbitrary<Do> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('write' as const), length: fc.oneof(fc.nat(64), fc.nat(12)) }),
  },
  { weight: 3, arbitrary: fc.constant({ do: 'next' as const }) },
  { weight: 3, arbitrary: fc.constant({ do: 'release' as const }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('revoke' as const), which: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'revokeOld' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'hurry' as const }) },
)

const space = (length: number): number => (8 + length + 7) & ~7

test('a ring is a queue whose records can be taken back until they are claimed', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(64, 128, 256, 512),
      fc.array(step, { maxLength: 120, size: 'max' }),
      (size, steps) => {
        const memory = createRing(size)
        const writer = new RingWriter(memory)
        const reader = new RingReader(memory)
        const model: Model = { records: [], claimed: null }
        const old: number[] = []
        let [stamp, written, taken, awaited] = [0, 0, 0, 0]
        for (const one of steps) {
          if (one.do === 'write') {
            const bytes = new Uint8Array(one.length).fill(++stamp & 0xff)
            const position = writer.write(bytes, bytes.length)
            const used = model.records.reduce((sum, record) => sum + space(record.bytes.length), 0)
            const held = model.claimed ? space(model.claimed.bytes.length) : 0
            if (position === null) {
              // Refused only when there may really be no room: each of two wraps can waste as much as a record.
              assert(
                used + held + 2 * space(one.length) + space(64) > size,
                `refused ${one.length} with ${used} of ${size} used`,
              )
            } else {
              model.records.push({ position, bytes, revoked: false })
              written++
            }
          } else if (one.do === 'next') {
            if (model.claimed) continue
            const at = reader.next()
            for (; model.records[0]?.revoked; taken++) model.records.shift()
            const expected = model.records.shift()
            if (expected) taken++
            if (!expected) {
              assert.equal(at, -1)
              continue
            }
            assert.notEqual(at, -1)
            assert.deepEqual(reader.memory.slice(at, reader.end), expected.bytes)
            model.claimed = expected
          } else if (one.do === 'release') {
            if (!model.claimed) continue
            reader.release()
            old.push(model.claimed.position)
            model.claimed = null
          } else if (one.do === 'revoke') {
            const record = model.records[one.which % Math.max(1, model.records.length)]
            if (!record) continue
            assert.equal(writer.revoke(record.position), !record.revoked)
            record.revoked = true
          } else if (one.do === 'hurry') {
            writer.hurry()
            awaited = written
          } else {
            if (model.claimed) assert.equal(writer.revoke(model.claimed.position), false)
            const last = old.at(-1)
            if (last !== undefined) assert.equal(writer.revoke(last), false)
          }
          assert.equal(reader.waiting, model.records.length)
          assert.equal(reader.isAwaited, awaited >= taken)
        }
      },
    ),
    { numRuns: 2000 },
  )
})

test('a full ring takes records again when room is made', () => {
  const memory = createRing(128)
  const writer = new RingWriter(memory)
  const reader = new RingReader(memory)
  const bytes = new Uint8Array(24).fill(7)
  let written = 0
  while (writer.write(bytes, 24) !== null) written++
  assert.equal(written, 4)
  for (let round = 0; round < 1000; round++) {
    assert.notEqual(reader.next(), -1)
    reader.release()
    assert.notEqual(writer.write(bytes, 24), null)
    assert.equal(writer.write(bytes, 24), null)
  }
})

test('a sleeper is to be woken once', () => {
  const memory = createRing(64)
  const writer = new RingWriter(memory)
  const reader = new RingReader(memory)
  assert.equal(writer.shouldWake(), false)
  reader.sleep()
  assert.equal(writer.shouldWake(), true)
  assert.equal(writer.shouldWake(), false)
  reader.sleep()
  reader.awake()
  assert.equal(writer.shouldWake(), false)
})

test('positions go on behind 32 bits', { timeout: 240_000 }, () => {
  const size = 2 ** 18
  const memory = createRing(size)
  const writer = new RingWriter(memory)
  const reader = new RingReader(memory)
  const bytes = new Uint8Array(8)
  // The length that is asked for counts, not the bytes that are there: so 2^32 are passed without copying.
  const long = size / 2 - 8
  for (let i = 0; i < 40_000; i++) {
    bytes[0] = i & 0xff
    if (writer.write(bytes, long) === null) assert.fail(`record ${i} is refused`)
    const at = reader.next()
    if (reader.memory[at] !== (i & 0xff)) assert.fail(`record ${i} is another`)
    reader.release()
  }
  assert.equal(reader.next(), -1)
})

test(
  'two threads: every record that was not taken back arrives once, in order',
  { timeout: 240_000 },
  async () => {
    const memory = createRing(4096)
    const writer = new RingWriter(memory)
    const count = 20_000
    const source = `
    const { workerData, parentPort } = require('node:worker_threads')
    import('tsx/esm/api').then(({ register }) => {
      register()
      return import(workerData.ring)
    }).then(({ RingReader }) => {
      const reader = new RingReader(workerData.memory)
      const seen = []
      let sum = 0
      for (;;) {
        const at = reader.next()
        if (at < 0) continue
        const view = new DataView(reader.memory.buffer, at)
        const number = view.getUint32(0, true)
        const length = reader.end - at
        // The filling tells whether the record was whole when it was claimed.
        for (let i = 4; i < length; i++) if (reader.memory[at + i] !== (number & 0xff)) sum++
        reader.release()
        if (number === 0xffffffff) break
        seen.push(number)
      }
      parentPort.postMessage({ seen, sum })
    })
  `
    const worker = new Worker(source, {
      eval: true,
      workerData: { memory, ring: new URL('../../src/node/threads/ring.ts', import.meta.url).href },
      execArgv: [],
    })
    const answer = new Promise<{ seen: number[]; sum: number }>((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
    })
    const expected: number[] = []
    await new Promise(resolve => worker.once('online', resolve))
    const end = Date.now() + 90_000
    const put = (number: number, length: number): number => {
      const bytes = new Uint8Array(length).fill(number & 0xff)
      new DataView(bytes.buffer).setUint32(0, number, true)
      for (;;) {
        const position = writer.write(bytes, length)
        if (position !== null) return position
        assert(Date.now() < end, 'the reader reads')
        writer.waitForRoom(5)
      }
    }
    for (let number = 0; number < count; number++) {
      const position = put(number, 4 + (number % 60))
      if (number % 3 !== 0 || !writer.revoke(position)) expected.push(number)
    }
    put(0xffffffff, 4)
    const { seen, sum } = await answer
    await worker.terminate()
    assert.equal(sum, 0)
    assert.deepEqual(seen, expected)
  },
)
