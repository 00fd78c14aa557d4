import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENTRY } from '../../src/store/format.ts'
import { Store } from '../../src/store/store.ts'
import { Running } from '../cli/folder.ts'
import { Program } from './folder.ts'

const APP = `
  import { task, main, barrier, FILE_IN, FILE_OUT, IN } from 'millrace'
  import { existsSync, ftruncateSync, openSync, closeSync } from 'node:fs'
  export const large = task({ params: [FILE_OUT] }, path => {
    const file = openSync(path, 'w')
    ftruncateSync(file, 2 ** 28)
    closeSync(file)
  })
  export const waits = task({ params: [FILE_IN] }, async path => {
    while (!existsSync('go')) await new Promise(resolve => setTimeout(resolve, 5))
  })
  main(async () => { large('l'); waits('l'); await barrier() })
`

test('a result that takes long to be looked at is kept although no other task ends after it', async () => {
  const program = new Program({ 'app.mjs': APP })
  const run = new Running(program.folder, [
    'run',
    'app.mjs',
    '--checkpoint',
    'all',
    '--resume',
    '--progress',
    'plain',
  ])
  const kept = (): number => {
    const { table } = Store.open(program.path('.millrace/store'), { isReadOnly: true })
    return Array.from({ length: table.size }, (_, i) => table.at(i)).filter(
      ({ type }) => type === ENTRY.result,
    ).length
  }
  while (kept() < 1) {
    assert.equal(run.process.exitCode ?? run.process.signalCode, null, run.stderr)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  run.process.kill('SIGKILL')
  await run.ended
})
