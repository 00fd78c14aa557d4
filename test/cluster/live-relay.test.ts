// Questions of ours go to a relay between two frames of the other side, wherever the bytes of that are cut.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { FrameSplitter } from '../../src/cluster/link/frames.ts'
import { LiveRelay } from '../../src/cluster/streams/live-relay.ts'
import { RELAY } from '../../src/cluster/streams/messages.ts'
import { frameOf } from '../../src/cluster/streams/relay-frame.ts'
import { until } from './program.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-relay-'))
after(() => rmSync(folder, { recursive: true, force: true }))
/** In place of a relay: it keeps what it gets. */
const board = join(folder, 'board')
writeFileSync(board, '#!/bin/sh\nexec cat > "$3"\n')
chmodSync(board, 0o700)

test('frames stay whole', { timeout: 60_000 }, async () => {
  let runs = 0
  const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 })
  const sizes = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 12 })
  const property = fc.asyncProperty(sizes, cuts, fc.nat(20), async (contents, pieces, asked) => {
    const to = join(folder, `${++runs}`)
    let took = 0
    const relay = new LiveRelay({ board, library: '' }, to, 'asked', {
      send: () => undefined,
      took: bytes => (took += bytes),
      broken: why => assert.fail(why),
    })
    const frames = contents.map((size, i) => frameOf(RELAY.data, `f${i}`, w => w.raw(Buffer.alloc(size, i))))
    const all = Buffer.concat(frames)
    let questions = 0
    for (let at = 0, k = 0; at < all.length; k++) {
      if (k % 3 === asked % 3) relay.ask(`q${questions++}`)
      const next = Math.min(all.length, at + (pieces[k % pieces.length] ?? 1))
      relay.take(all.subarray(at, next))
      at = next
    }
    await until(() => took === all.length)
    relay.end()
    const expected =
      all.length + Array.from({ length: questions }, (_, i) => `q${i}`).join('').length + 7 * questions
    await until(() => existsSync(to) && readFileSync(to).length === expected)
    const seen: string[] = []
    const got: number[] = []
    new FrameSplitter().push(readFileSync(to), (type, content) => {
      const bytes = Buffer.from(content.rest())
      const name = bytes.toString('utf8', 2, 2 + bytes.readUInt16LE(0))
      if (type === RELAY.want) seen.push(name)
      else got.push(bytes.length - 2 - name.length)
    })
    assert.deepEqual(got, contents)
    assert.deepEqual(
      seen,
      Array.from({ length: questions }, (_, i) => `q${i}`),
    )
  })
  await fc.assert(property, { numRuns: 40 })
})
