import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { ENTRY } from '../../src/store/format.ts'
import { Store } from '../../src/store/store.ts'
import { Running } from '../cli/folder.ts'
import { Program } from './folder.ts'

const APP = `
  import { task, main, waitOn, FILE_OUT, FILE_IN, IN } from 'millrace'
  import { existsSync, readFileSync, writeFileSync } from 'node:fs'
  import { ran } from './ran.mjs'
  export const value = task({}, n => { ran('value ' + n); return new Float64Array(n * 1000).fill(n) })
  export const file = task({ params: [FILE_OUT, IN] }, (path, n) => { ran('file ' + n); writeFileSync(path, 'file ' + n) })
  export const sum = task({ params: [IN, FILE_IN] }, async (array, path) => {
    ran('sum')
    while (!existsSync('go')) await new Promise(resolve => setTimeout(resolve, 5))
    return array.length + readFileSync(path, 'utf8').length
  })
  main(async () => {
    const sums = [1, 2, 3, 4].map(n => { file('f' + n, n); return sum(value(n), 'f' + n) })
    console.log(await waitOn(sums))
  })
`

/** Results that are in the store. */
function kept(program: Program): number {
  const { table } = Store.open(program.path('.millrace/store'), { isReadOnly: true })
  return Array.from({ length: table.size }, (_, i) => table.at(i)).filter(({ type }) => type === ENTRY.result)
    .length
}

test('what agents made is kept when the coordinator is killed, and a resumed run finds it, on agents and without', async () => {
  const program = new Program({ 'app.mjs': APP })
  const args = [
    'run',
    'app.mjs',
    '--nodes',
    'local:2',
    '--checkpoint',
    'all',
    '--resume',
    '--progress',
    'plain',
  ]
  const run = new Running(program.folder, args)
  while (kept(program) < 8) await new Promise(resolve => setTimeout(resolve, 20))
  run.process.kill('SIGKILL')
  await run.ended
  writeFileSync(program.path('go'), '')
  const before = program.ran().length
  const resumed = await new Running(program.folder, args).ended
  assert.equal(resumed.stdout, '[ 1006, 2006, 3006, 4006 ]\n', resumed.stderr)
  const again = readFileSync(program.path('ran.log'), 'utf8').trim().split('\n').slice(before)
  assert.deepEqual([...new Set(again)], ['sum'], 'only what had not ended ran again')
  const local = await program.run('--resume')
  assert.equal(local.stdout, resumed.stdout)
  assert.deepEqual(local.ran, [], 'results of agents count without agents')
  assert.ok(existsSync(program.path('f1')))
})
