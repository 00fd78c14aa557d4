import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { test } from 'node:test'
import { millrace } from '../cli/folder.ts'
import { Worth } from '../../src/runtime/resume/policy.ts'
import { Program } from './folder.ts'

/** Kills itself at its end, unless the file `end` is there: only what was on its way by then is kept. */
const APP = `
  import { existsSync } from 'node:fs'
  import { task, main, waitOn, group } from 'millrace'
  import { ran } from './ran.mjs'
  const spin = ms => { for (const end = performance.now() + ms; performance.now() < end;); }
  export const plain = task({}, x => { spin(30); ran('plain ' + x); return x })
  export const marked = task({ cache: true }, x => { spin(30); ran('marked ' + x); return x })
  export const tiny = task({}, x => { ran('tiny'); return x })
  main(async () => {
    await waitOn([plain(1), marked(1)])
    await group('kept', { checkpoint: true }, () => waitOn([plain(2), marked(2)]))
    for (let i = 0; i < 40; i++) await waitOn(tiny(i))
    if (!existsSync('end')) process.kill(process.pid, 'SIGKILL')
    console.log('done')
  })
`

const LONG = ['marked 1', 'marked 2', 'plain 1', 'plain 2']

/** Runs it once with a policy, and again; which tasks ran then. */
async function again(policy: string, isKilled: boolean): Promise<{ ran: string[]; stderr: string }> {
  // A group with a checkpoint is written when it has ended, whatever the policy is.
  const app = policy === 'groups' ? APP : APP.replace('{ checkpoint: true }', '{}')
  const program = new Program({ 'app.mjs': app, ...(isKilled ? {} : { end: '' }) })
  const run = (...more: string[]) =>
    millrace(program.folder, ['run', 'app.mjs', '--checkpoint', policy, '--progress', 'plain', ...more])
  await run()
  rmSync(program.path('ran.log'))
  const { stderr } = await run('--resume', '--explain')
  return { ran: [...new Set(program.ran())], stderr }
}

test('--checkpoint tasks keeps those with cache: true', async () => {
  const { ran, stderr } = await again('tasks', false)
  assert.deepEqual(ran, ['plain 1', 'plain 2', 'tiny'])
  assert.match(stderr, /plain: 0 reused.*only tasks with cache: true are kept/)
})

test('--checkpoint groups keeps those of groups, which are on the disk when the group has ended', async () => {
  const { ran } = await again('groups', true)
  assert.ok(!ran.includes('plain 2') && !ran.includes('marked 2'), ran.join())
  assert.ok(ran.includes('plain 1'))
})

test('--checkpoint all keeps all', async () => {
  assert.deepEqual((await again('all', false)).ran, [])
})

test('with auto, long results are kept', async () => {
  const { ran } = await again('auto', false)
  assert.deepEqual(
    ran.filter(name => name !== 'tiny'),
    [],
  )
})

test('a result is kept if it took several times as long as keeping it does, as that is measured', () => {
  const worth = new Worth()
  assert.equal(worth.isWorth(0.05, 100), false)
  assert.equal(worth.isWorth(1, 1000), true)
  assert.equal(worth.isWorth(1, 10_000_000), false)
  for (let i = 0; i < 200; i++) worth.measured(2, 1000)
  assert.equal(worth.isWorth(5, 1000), false, 'a slow disk')
  assert.equal(worth.isWorth(50, 1000), true)
})

test('--checkpoint N writes after every N tasks, and a time as often', async () => {
  const long = (ran: readonly string[]): string[] => ran.filter(name => name !== 'tiny')
  for (const policy of ['1', '20ms']) assert.deepEqual(long((await again(policy, false)).ran), [], policy)
  // It is killed before.
  for (const policy of ['1000', '1h']) assert.deepEqual(long((await again(policy, true)).ran), LONG, policy)
})

test('off keeps nothing', async () => {
  const program = new Program({ 'app.mjs': APP, end: '' })
  await millrace(program.folder, ['run', 'app.mjs', '--checkpoint', 'off'])
  const { stderr, code } = await millrace(program.folder, [
    'run',
    'app.mjs',
    '--checkpoint',
    'off',
    '--resume',
  ])
  assert.equal(code, 2)
  assert.match(stderr, /--checkpoint off keeps no results/)
})
