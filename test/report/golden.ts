import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, 'golden')

/** Compares with a file that was looked at by a person. `UPDATE_GOLDEN=1` writes it anew. */
export function assertGolden(name: string, found: Uint8Array): void {
  const path = join(folder, name)
  if (process.env['UPDATE_GOLDEN'] === '1') {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path, found)
  }
  assert.equal(Buffer.from(found).toString('latin1'), readFileSync(path, 'latin1'))
}

export function readGolden(name: string): Buffer {
  return readFileSync(join(folder, name))
}
