import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { Worker } from 'node:worker_threads'
import { makeFolders, makeFoldersNow } from '../../src/storage/folders.ts'

const base = mkdtempSync(join(tmpdir(), 'millrace-folders-'))
test.after(() => rmSync(base, { recursive: true, force: true }))

const ways = { makeFolders, makeFoldersNow: async (path: string) => makeFoldersNow(path) }

for (const [name, make] of Object.entries(ways)) {
  test(`${name} makes all folders that are missing, and leaves those that are there`, async () => {
    const deep = join(base, name, ...Array.from({ length: 60 }, (_, i) => String(i)))
    await make(deep)
    await make(deep)
    assert(statSync(deep).isDirectory())
  })

  test(`${name} fails where a file is in the way, and where nothing can be made`, async () => {
    const file = join(base, `${name}-file`)
    writeFileSync(file, '')
    await assert.rejects(make(file), { code: 'EEXIST' })
    await assert.rejects(make(join(file, 'below')), { code: 'ENOTDIR' })
    if (existsSync('/proc')) await assert.rejects(make('/proc/nothing/below'), { code: 'ENOENT' })
  })

  test(`${name} succeeds while another process removes folders that are empty`, async () => {
    const folder = join(base, `${name}-shared`)
    const removals = new Int32Array(new SharedArrayBuffer(4))
    const remover = new Worker(REMOVER, { eval: true, workerData: { folder, removals } })
    await once(remover, 'online')
    remover.unref()
    let removed = 0
    for (let round = 0; round < 200; round++) {
      // Each is one that counts, and a process that makes a folder stands more than these.
      Atomics.store(removals, 0, 20)
      await make(join(folder, 'own'))
      await rmdir(join(folder, 'own'))
      removed += 20 - Atomics.load(removals, 0)
    }
    await remover.terminate()
    assert(removed > 0)
  })
}

const REMOVER = `
  const { rmdirSync } = require('node:fs')
  const { folder, removals } = require('node:worker_threads').workerData
  for (;;) {
    try {
      if (Atomics.load(removals, 0) > 0) {
        rmdirSync(folder)
        Atomics.sub(removals, 0, 1)
      }
    } catch {}
  }`
