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
