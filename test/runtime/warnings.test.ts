import assert from 'node:assert/strict'
import test from 'node:test'
import { Program } from './program.ts'

const PROGRAM = `
import { writeFileSync } from 'node:fs'
import { FILE_OUT, main, task } from 'millrace'
export const index = task({ name: 'index', params: [FILE_OUT] }, path => {
  writeFileSync(path, '')
  writeFileSync(path + '.idx', '')
})
main(() => { index('a') })
`

test('given a program that runs without a terminal, we should see its warnings, unless silence is asked for', async () => {
  const shown = async (env: Record<string, string>): Promise<string> => {
    const program = new Program({ 'app.mjs': PROGRAM })
    const { code, err } = await program.run('app.mjs', [], env)
    assert.equal(code, 0, err)
    await program.leavesNothing()
    return err
  }
  for (const journal of ['on', 'off']) {
    assert.match(await shown({ MILLRACE_JOURNAL: journal }), /^millrace: warning: .*a\.idx .*FILE_OUT\.\n$/)
    assert.equal(await shown({ MILLRACE_JOURNAL: journal, MILLRACE_PROGRESS: 'none' }), '')
  }
})

const STRANDED = `
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { FILE_IN, FILE_OUT, IN, main, shared, task } from 'millrace'
export const reads = task({ name: 'reads', params: [FILE_IN, IN] }, (_path, going) => {
  Atomics.store(going, 0, 1)
  Atomics.wait(going, 1, 0)
})
export const writes = task({ name: 'writes', params: [FILE_OUT] }, path => writeFileSync(path, 'new'))
main(async () => {
  const going = shared(Int32Array, 2)
  writeFileSync('a', 'old')
  reads('a', going)
  // It is complete, and waits beside its place for the reader of the old one.
  await writes('a')
  while (!Atomics.load(going, 0)) await new Promise(resolve => setTimeout(resolve, 5))
  rmSync('a')
  mkdirSync('a/x', { recursive: true })
  Atomics.store(going, 1, 1)
  Atomics.notify(going, 1)
})
`

test('given a result that cannot be brought to its place, we should say so once, with a terminal or without', async () => {
  for (const progress of ['', 'none', 'plain']) {
    const program = new Program({ 'app.mjs': STRANDED })
    const { code, err } = await program.run('app.mjs', [], progress ? { MILLRACE_PROGRESS: progress } : {})
    assert.equal(code, 1, err)
    assert.equal(err.split('could not be written').length, 2, err)
  }
})
