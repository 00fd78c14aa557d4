import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { FrameSplitter, FrameWriter } from '../../src/cluster/link/frames.ts'

const content = fc.record({
  type: fc.integer({ min: 0, max: 255 }),
  number: fc.maxSafeNat(),
  text: fc.string({ unit: 'binary', maxLength: 300 }),
  double: fc.double({ noNaN: true }),
  block: fc.uint8Array({ maxLength: 40_000 }),
})

test('frames come out as they went in, wherever the stream is cut', () => {
  fc.assert(
    fc.property(
      fc.array(content, { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1 }),
      (frames, cuts) => {
        const writer = new FrameWriter()
        for (const { type, number, text, double, block } of frames) {
          writer.begin(type)
          writer.varint(number)
          writer.text(text)
          writer.double(double)
          writer.block(block)
          writer.end()
        }
        const bytes = writer.take()
        assert.ok(writer.isEmpty)
        const splitter = new FrameSplitter()
        const seen: unknown[] = []
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = cuts[i % cuts.length] as number
          splitter.push(Buffer.from(bytes.subarray(at, at + size)), (type, reader) => {
            const [number, text, double] = [reader.varint(), reader.text(), reader.double()]
            seen.push({ type, number, text, double, block: Uint8Array.from(reader.block()) })
            assert.ok(reader.isDone)
          })
          at += size
        }
        assert.deepEqual(
          seen,
          frames.map(frame => ({ ...frame, text: Buffer.from(frame.text).toString() })),
        )
      },
    ),
  )
})

test('bytes that cannot be frames are refused', () => {
  const splitter = new FrameSplitter()
  assert.throws(
    () => splitter.push(Buffer.from('\xff\xff\xff\xff\xffhello', 'latin1'), () => undefined),
    RangeError,
  )
})
