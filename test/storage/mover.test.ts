import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ALWAYS_WANTED, Abandoned, copyDurably } from '../../src/storage/mover.ts'
import { SharedPace } from '../../src/storage/pace.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-test-mover-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const from = join(folder, 'from')
const bytes = Buffer.alloc(2_500_000, 'some text ')
writeFileSync(from, bytes, { mode: 0o640 })

let copies = 0
const newPath = (): string => join(folder, `copy${++copies}`)
const whole = (path: string): boolean => readFileSync(path).equals(bytes)

test('a copy that may go no further begins again when the rate rises', async () => {
  let rate = 0
  const path = newPath()
  let asked = 0
  const pace = new SharedPace(() => (asked++, rate))
  const copied = copyDurably(from, path, pace, ALWAYS_WANTED)
  while (asked < 5) await new Promise(resolve => setTimeout(resolve, 5))
  assert.equal(statSync(path).size, 0)
  rate = 1e12
  assert.equal(await copied, bytes.length)
  assert(whole(path))
  assert.equal(statSync(path).mode & 0o777, 0o640)
})

test('a copy that somebody waits for does not heed the rate', async () => {
  let isUrgent = false
  const path = newPath()
  const going = { isWanted: () => true, isUrgent: () => isUrgent }
  const copied = copyDurably(from, path, new SharedPace(() => 1), going)
  isUrgent = true
  await copied
  assert(whole(path))
})

test('copies that share a rate all arrive', async () => {
  const pace = new SharedPace(() => 200e6)
  const paths = Array.from({ length: 5 }, newPath)
  await Promise.all(paths.map(path => copyDurably(from, path, pace, ALWAYS_WANTED)))
  for (const path of paths) assert(whole(path))
})

test('a copy that nobody wants any more is given up, also while it waits', async () => {
  let isWanted = true
  const going = { isWanted: () => isWanted, isUrgent: () => false }
  const copied = copyDurably(from, newPath(), new SharedPace(() => 0), going)
  isWanted = false
  await assert.rejects(copied, Abandoned)
})
