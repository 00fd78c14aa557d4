import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FrameIntake, keep, letGo } from '../../src/cluster/streams/slabs.ts'
import { Random } from '../core/random.ts'

const HEADER = 5

/** A frame whose bytes follow from its number. */
function frameOf(number: number, size: number): Buffer {
  const frame = Buffer.alloc(HEADER + size, (number * 7 + 1) % 251)
  frame.writeUInt32LE(size)
  frame[4] = number % 256
  return frame
}

const isWhole = (frame: Buffer, number: number, size: number): boolean =>
  frame.equals(frameOf(number, size).subarray(HEADER))

for (const seed of [1, 2, 3]) {
  test(`frames in memory that is used again stay as they are until they are let go (seed ${seed})`, () => {
    const random = new Random(seed)
    const sizes = Array.from({ length: 400 }, () =>
      random.below(10) === 0 ? random.below(5 << 20) : random.below(random.below(2) ? 300_000 : 100),
    )
    const kept: { bytes: Buffer; number: number }[] = []
    let count = 0
    const intake = new FrameIntake((type, content) => {
      const number = count++
      const size = sizes[number] as number
      assert.equal(type, number % 256)
      const bytes = content.rest()
      assert.equal(bytes.length, size)
      assert.ok(isWhole(bytes, number, size), `frame ${number} as it comes`)
      if (random.below(3) > 0) return
      keep(bytes)
      kept.push({ bytes, number })
    })
    const dropOne = (): void => {
      const [one] = kept.splice(random.below(kept.length), 1)
      if (!one) return
      assert.ok(isWhole(one.bytes, one.number, sizes[one.number] as number), `frame ${one.number}, kept`)
      letGo(one.bytes)
    }
    for (const [number, size] of sizes.entries()) {
      const frame = frameOf(number, size)
      for (let at = 0; at < frame.length;) {
        const piece = frame.subarray(at, at + 1 + random.below(random.below(2) ? 200_000 : 20))
        if (piece.length > 1000 && random.below(2)) intake.push(piece)
        else {
          const room = intake.room()
          const part = piece.subarray(0, room.length)
          room.set(part)
          intake.took(part.length)
          at += part.length
          continue
        }
        at += piece.length
      }
      if (kept.length > 20) dropOne()
    }
    assert.equal(count, sizes.length)
    while (kept.length > 0) dropOne()
    intake.end()
  })
}

test('memory is used again when nobody needs it', () => {
  const memories = new Set<ArrayBufferLike>()
  const waiting: Buffer[] = []
  const intake = new FrameIntake((_, content) => {
    const bytes = content.rest()
    memories.add(bytes.buffer)
    keep(bytes)
    waiting.push(bytes)
    if (waiting.length > 10) letGo(waiting.shift() as Buffer)
  })
  const frame = frameOf(1, 200_000)
  for (let i = 0; i < 500; i++) intake.push(frame)
  for (const bytes of waiting) letGo(bytes)
  intake.end()
  // 100 MB went through.
  assert.ok(memories.size <= 6, `${memories.size} slabs`)
})

test('a frame that nobody can have sent is refused', () => {
  const intake = new FrameIntake(() => undefined)
  assert.throws(() => intake.push(Buffer.alloc(HEADER, 255)), RangeError)
})
