import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { digestOf } from '../../src/store/digest.ts'
import type { OpenAppender } from '../../src/store/disk.ts'
import { ENTRY, FORMAT_TEXT } from '../../src/store/format.ts'
import { Store } from '../../src/store/store.ts'

/** A write to one of the files, or the moment at which a file was synced: nothing before it can be lost. */
type Step =
  | { type: 'write'; file: string; offset: number; bytes: Buffer }
  | { type: 'sync'; file: string }
  | { type: 'promised'; count: number }

const base = mkdtempSync(join(tmpdir(), 'millrace-power-'))
after(() => rmSync(base, { recursive: true, force: true }))

const valueOf = (n: number): Buffer => Buffer.alloc(1 + ((n * 37) % 900), `value ${n} `)
const keyOf = (n: number): Buffer => digestOf(`task ${n}`)

/** Puts results and writes down every write and every sync, in order. */
async function record(batches: readonly number[], syncsAfter: readonly number[]): Promise<Step[]> {
  const steps: Step[] = []
  const folder = mkdtempSync(join(base, 'real-'))
  const openAppender: OpenAppender = path => {
    const file = basename(path)
    let offset = 0
    return Promise.resolve({
      append: bytes => {
        steps.push({ type: 'write', file, offset, bytes: Buffer.from(bytes) })
        offset += bytes.length
        return Promise.resolve()
      },
      sync: () => Promise.resolve(void steps.push({ type: 'sync', file })),
      close: () => Promise.resolve(),
    })
  }
  const store = Store.open(folder, { name: 'run', openAppender })
  let n = 0
  for (const [i, size] of batches.entries()) {
    for (let j = 0; j < size; j++, n++) store.put(ENTRY.result, keyOf(n), valueOf(n))
    const isSynced = syncsAfter.includes(i)
    await store.flush(isSynced)
    if (isSynced) steps.push({ type: 'promised', count: n })
  }
  rmSync(folder, { recursive: true })
  return steps
}

/** What a disk may hold after a power cut at `at`: of what was not synced, each piece is there, or not, or in part. */
function afterCut(
  steps: readonly Step[],
  at: number,
  luck: () => number,
): { files: Map<string, Buffer>; promised: number } {
  const files = new Map<string, Buffer>()
  let promised = 0
  for (const [i, step] of steps.slice(0, at).entries()) {
    if (step.type === 'promised') promised = step.count
    if (step.type !== 'write') continue
    const { file, offset, bytes } = step
    const isSafe = steps.slice(i, at).some(one => one.type === 'sync' && one.file === file)
    const fate = isSafe ? 0 : luck()
    // Lost; or there up to a byte; or there from a byte on, with zeros before; or whole.
    const from = fate > 0.75 ? Math.floor(luck() * bytes.length) : 0
    const to =
      fate > 0.25 && fate <= 0.5
        ? 0
        : fate > 0.5 && fate <= 0.75
          ? Math.floor(luck() * bytes.length)
          : bytes.length
    if (to === 0) continue
    const before = files.get(file) ?? Buffer.alloc(0)
    const grown = Buffer.alloc(Math.max(before.length, offset + to))
    before.copy(grown)
    bytes.copy(grown, offset + from, from, to)
    files.set(file, grown)
  }
  return { files, promised }
}

test('a power cut at any moment loses only what was not synced, and gives no wrong result', async () => {
  let folders = 0
  const property = fc.asyncProperty(
    fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 8 }),
    fc.array(fc.integer({ min: 0, max: 7 }), { maxLength: 3 }),
    fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })),
    async (batches, syncs, stream) => {
      const steps = await record(batches, syncs)
      const total = batches.reduce((sum, size) => sum + size, 0)
      const luck = (): number => stream.next().value as number
      for (let round = 0; round < 4; round++) {
        const at = Math.floor(luck() * (steps.length + 1))
        const { files, promised } = afterCut(steps, at, luck)
        const folder = join(base, `cut-${folders++}`)
        mkdirSync(join(folder, 'segments'), { recursive: true })
        writeFileSync(join(folder, 'format'), luck() < 0.5 ? FORMAT_TEXT : '')
        for (const [name, bytes] of files) writeFileSync(join(folder, 'segments', name), bytes)
        const store = Store.open(folder)
        for (let n = 0; n < total; n++) {
          const found = store.find(ENTRY.result, keyOf(n))
          if (found || n < promised)
            assert.deepEqual(found, valueOf(n), `result ${n} of ${promised} promised`)
        }
        await store.close()
        rmSync(folder, { recursive: true })
      }
    },
  )
  await fc.assert(property, { numRuns: 120 })
})
