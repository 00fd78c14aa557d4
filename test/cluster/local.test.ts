import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { jsonLines, makeFolder, millrace } from '../cli/folder.ts'
import {
  EXPECTED,
  agentsOf,
  allKilled,
  arguments_,
  folder,
  forget,
  isAlive,
  sockets,
  start,
  until,
  workers,
} from './program.ts'

test('a program on two agents has the results of one machine', { timeout: 120_000 }, () => {
  const text = execFileSync(process.execPath, arguments_('local:2', 'all'), {
    encoding: 'utf8',
    env: { ...process.env, MILLRACE_TEST_WORD: 'wind', TMPDIR: sockets },
  })
  const { pids, self, ...rest } = JSON.parse(text) as Record<string, unknown>
  assert.equal(self, false)
  assert.equal(pids, 2)
  assert.deepEqual(rest, EXPECTED)
  assert.equal(readFileSync(join(folder, 'ab'), 'utf8'), 'ab')
  assert.deepEqual(readdirSync(sockets), [])
})

test('an agent that is killed costs nothing but time', { timeout: 120_000 }, async () => {
  const run = start([process.execPath, ...arguments_('local:2', 'kill')])
  await until(() => workers().length === 2, run)
  const [victim = 0] = workers()
  assert.ok(agentsOf(run.pid).includes(victim))
  process.kill(victim, 'SIGKILL')
  allKilled()
  const { code, text, said } = await run.ended
  assert.equal(code, 0, said)
  assert.deepEqual(
    JSON.parse(text),
    Array.from({ length: 60 }, (_, i) => i),
  )
  for (let i = 0; i < 20; i++) assert.equal(readFileSync(join(folder, `s${i}`), 'utf8'), `${i}\n`)
  assert.deepEqual(agentsOf(run.pid), [])
})

test(
  'a task that kills its nodes is found out, and the others are spared',
  { timeout: 120_000 },
  async () => {
    const run = spawn(process.execPath, arguments_('local:4', 'bad'), { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    let shown = ''
    run.stdout.on('data', (chunk: Buffer) => (shown += chunk.toString()))
    run.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const code = await new Promise<number | null>(resolve => run.on('exit', resolve))
    assert.equal(code, 1)
    assert.match(said + shown, /the third in turn/)
    const nodes = readFileSync(join(folder, 'bad'), 'utf8').trim().split('\n')
    assert.equal(new Set(nodes).size, 3)
  },
)

test('a run on several nodes tells how it ended, and its journal has the end', async () => {
  const own = makeFolder({
    'app.mjs': `
import { task, main, waitOn } from 'millrace'
export const twice = task({ name: 'twice' }, x => 2 * x)
main(async () => { console.log(await waitOn([1, 2, 3].map(x => twice(x)))) })
`,
  })
  const ended = await millrace(own, ['run', 'app.mjs', '--nodes', 'local:2', '--progress', 'plain'])
  assert.equal(ended.code, 0, ended.stderr)
  assert.equal(ended.stdout, '[ 2, 4, 6 ]\n')
  assert.match(ended.stderr, /^done .*\n {2}tasks +3 ok, of 3$/m)
  const [run] = jsonLines((await millrace(own, ['runs', '--json'])).stdout)
  assert.equal(run?.['outcome'], 'ok')
})

test('a coordinator that is killed leaves no agent and no socket', { timeout: 120_000 }, async () => {
  forget()
  const run = start([process.execPath, ...arguments_('local:2', 'kill')])
  await until(() => workers().length === 2, run)
  process.kill(run.pid, 'SIGKILL')
  await until(() => !workers().some(isAlive))
  // The watchdog of the run removes their folder.
  await until(() => readdirSync(sockets).length === 0)
})
