import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { barrier } from 'millrace'
import { shortOrLong } from '../fixtures/commands.ts'
import { temporaryFolder, until } from './embedded.ts'

const folder = temporaryFolder()

test('short commands that wait behind one that turns out to be long are run elsewhere', async () => {
  const at = mkdtempSync(join(folder, 'd'))
  for (let i = 0; i < 40; i++) shortOrLong('short', at, `before-${i}`)
  await barrier()
  shortOrLong('long', at, 'long')
  for (let i = 0; i < 60; i++) shortOrLong('short', at, `after-${i}`)
  const ran = (): number => readdirSync(at).filter(name => name.startsWith('after-')).length
  await until(() => ran() === 60, 'the short ones')
  assert(existsSync(join(at, 'long')))
  writeFileSync(join(at, 'go'), '')
  await barrier()
})
