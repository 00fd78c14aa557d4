import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { deviceKey, remember, remembered } from '../../src/storage/device-memory.ts'
import { measureFolder } from '../../src/storage/measure.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-test-measure-'))
after(() => rmSync(folder, { recursive: true, force: true }))
process.env['XDG_CACHE_HOME'] = folder

test('a device is measured, leaves nothing behind, and is remembered', async () => {
  const measured = await measureFolder(folder)
  assert.ok(measured.read > 0 && measured.write > 0)
  assert.deepEqual(readdirSync(folder), [])
  assert.equal(remembered(folder), null)
  remember(folder, measured)
  assert.deepEqual(remembered(join(folder, '.')), measured)
})

test('two file systems are two devices', { skip: deviceKey('/dev/shm') === deviceKey(folder) }, () => {
  remember(folder, { read: 1, write: 2 })
  remember('/dev/shm', { read: 3, write: 4 })
  assert.deepEqual(remembered(folder), { read: 1, write: 2 })
  assert.deepEqual(remembered('/dev/shm'), { read: 3, write: 4 })
})

test('a folder that is not there is not measured', async () => {
  await assert.rejects(measureFolder(join(folder, 'nowhere')), /ENOENT/)
  assert.equal(remembered(join(folder, 'nowhere')), null)
})
