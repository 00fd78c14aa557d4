import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { excerptOf } from '../../src/node/logs.ts'

const numbers = (count: number, width = 0): string =>
  Array.from({ length: count }, (_, i) => `line ${i + 1}${'.'.repeat(width)}\n`).join('')

async function excerpt(text: string): ReturnType<typeof excerptOf> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-logs-'))
  try {
    writeFileSync(join(folder, 'log'), text)
    return await excerptOf(join(folder, 'log'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('a short log is kept whole', async () => {
  assert.deepEqual(await excerpt(numbers(20)), { text: numbers(20).trimEnd() })
})

test('of a longer log the first lines, where the error often is, and the last ones are kept', async () => {
  const kept = await excerpt(numbers(52))
  assert.deepEqual(kept?.cut, { first: 8, lines: 52 })
  const lines = kept?.text.split('\n') ?? []
  assert.equal(lines.length, 20)
  assert.deepEqual([lines[0], lines[7], lines[8], lines[19]], ['line 1', 'line 8', 'line 41', 'line 52'])
})

test('lines of a very long log are not counted', async () => {
  const kept = await excerpt(numbers(40_000, 100))
  assert.deepEqual(kept?.cut, { first: 8, lines: null })
  assert.match(kept?.text ?? '', /^line 1\.+\n[^]*\nline 40000\.+$/)
})

test('a log that is not there has no excerpt', async () => {
  assert.equal(await excerptOf('/nowhere/at/all'), undefined)
})
