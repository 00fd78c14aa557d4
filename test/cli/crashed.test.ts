import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { bin, makeFolder } from './folder.ts'

const PROGRAM = `
import { main, task } from 'millrace'
export const crash = task({ name: 'crash' }, () => {
  if (process.env.CRASHES === undefined) return 1
  process.kill(process.pid, 'SIGSEGV')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
main(async () => console.log(await crash()))
`

test('a run that crashed in native code is reported by the next one, once', () => {
  const folder = makeFolder({ 'app.mjs': PROGRAM })
  const run = (env: NodeJS.ProcessEnv) => {
    const args = [bin, 'run', 'app.mjs', '--progress', 'plain', '--cpus', '1']
    return spawnSync(process.execPath, args, {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, ...env },
    })
  }
  const crashed = run({ CRASHES: '1' })
  assert.equal(crashed.signal, 'SIGSEGV', crashed.stderr)
  const name = /^run (\S+):/m.exec(crashed.stderr)?.[1]
  const next = run({})
  assert.equal(next.stdout, '1\n')
  assert.match(next.stderr, new RegExp(`the run before this one, ${name ?? '\\S+'}, ended without a word`))
  assert.doesNotMatch(run({}).stderr, /without a word/)
})
