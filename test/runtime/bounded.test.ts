import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { configure, removeFile, waitOn } from 'millrace'
import { bytesIn, change, make, makeIo, use } from '../fixtures/bounded-tasks.ts'
import { rejection, temporaryFolder } from './embedded.ts'

const folder = temporaryFolder()
const LIMIT = 40_000
configure({ maxIntermediate: LIMIT })

let runs = 0
function newFolder(): string {
  const path = join(folder, String(runs++))
  mkdirSync(path)
  return path
}

for (const [name, produce] of [
  ['tasks', make],
  ['I/O tasks', makeIo],
] as const) {
  test(`${name}: temporary files never take more than the bound`, async () => {
    const work = newFolder()
    const seen: number[] = []
    const made = []
    const gone = []
    for (let i = 0; i < 40; i++) {
      const path = join(work, `${i}.tmp`)
      made.push(produce(10_000, folder, path))
      made.push(use(path, folder))
      gone.push(removeFile(path))
    }
    for (const one of await waitOn(made)) seen.push(typeof one === 'number' ? one : one.there)
    await Promise.all(gone)
    assert(Math.max(...seen) <= LIMIT, `${Math.max(...seen)} bytes were there`)
    assert(Math.max(...seen) > 10_000, 'more than one at a time')
    assert.equal(bytesIn(folder), 0, 'when removeFile resolves, the room is free')
  })
}

test('a task that writes more than the bound is refused with both numbers', async () => {
  const path = join(newFolder(), 'large')
  const error = await rejection(
    (async () => {
      await make(2 * LIMIT, folder, path)
    })(),
  )
  assert.equal(error.code, 'MR_CONSTRAINT')
  assert.match(error.message, /make writes .* of temporary data, .* may take 40 kB/)
})

/** Two of these are exactly the bound. */
const LARGEST = LIMIT / 2

test('a bound that is exactly what the program needs in order is enough, also for odd sizes', async () => {
  const work = newFolder()
  const sizes = [19_999, 20_001, 19_999, 20_001]
  const made = []
  const gone = []
  for (const [i, bytes] of sizes.entries()) {
    made.push(make(bytes, folder, join(work, String(i))))
    if (i === 0) continue
    const earlier = join(work, String(i - 1))
    made.push(use(earlier, folder))
    gone.push(removeFile(earlier))
  }
  gone.push(removeFile(join(work, String(sizes.length - 1))))
  await waitOn(made)
  await Promise.all(gone)
  assert.equal(bytesIn(folder), 0)
})

/** Each step makes a file, some of them by reading the one before: two files at a time are enough. */
const programs = fc.array(fc.record({ bytes: fc.integer({ min: 1, max: LARGEST }), follows: fc.boolean() }), {
  minLength: 1,
  maxLength: 25,
})

test('random chains of temporary files end, with all data right and within the bound', async () => {
  await fc.assert(
    fc.asyncProperty(programs, async steps => {
      const work = mkdtempSync(join(folder, 'r'))
      const results = []
      const gone = []
      const expected = []
      let last: { path: string; bytes: number } | null = null
      for (const [i, { bytes, follows }] of steps.entries()) {
        const path = join(work, `${i}.tmp`)
        if (last && follows) {
          results.push(change(bytes, folder, path, last.path))
          expected.push(last.bytes)
        } else {
          if (last) {
            results.push(use(last.path, folder))
            expected.push(last.bytes)
          }
          make(bytes, folder, path)
        }
        if (last) gone.push(removeFile(last.path))
        last = { path, bytes }
      }
      if (last) gone.push(removeFile(last.path))
      const seen = await waitOn(results)
      await Promise.all(gone)
      assert.deepEqual(
        seen.map(one => one.read),
        expected,
      )
      for (const { there } of seen) assert(there <= LIMIT, `${there} bytes were there`)
      assert.equal(bytesIn(folder), 0, 'when removeFile resolves, the room is free')
    }),
    { numRuns: 40, endOnFailure: true },
  )
})
