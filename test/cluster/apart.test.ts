import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { millrace } from '../cli/folder.ts'
import { EXPECTED, arguments_, folder, start, until } from './program.ts'

/** Agents with folders of their own, as on machines that share no disk. */
const nodes = join(folder, 'nodes')
mkdirSync(nodes)
const program = join(import.meta.dirname, 'apart', 'program.mjs')
const root = join(import.meta.dirname, '..', '..')
const variables = { MILLRACE_NODE_FOLDER: nodes, MILLRACE_INDEX: join(root, 'dist', 'index.js') }

async function run(mode: string, more: readonly string[] = ['--nodes', 'local:2x1']) {
  const at = mkdtempSync(join(folder, `${mode}-`))
  const words = ['run', program, ...more, '--progress', 'plain', '--', mode]
  const ended = await millrace(at, words, variables)
  // Nothing is left on the nodes, nor where tasks write here. That of a killed agent is removed by its watchdog.
  await until(() => readdirSync(nodes).length === 0)
  const left = readdirSync(at).filter(name => name.startsWith('.millrace-') || name.endsWith('.part'))
  assert.deepEqual(left, [])
  return { ...ended, at }
}

test('without a shared folder a program has the results of one machine', { timeout: 60_000 }, async () => {
  const words = [process.execPath, ...arguments_('local:2', 'all')]
  const { code, text, said } = await start(words, { MILLRACE_NODE_FOLDER: nodes }).ended
  assert.equal(code, 0, said)
  const { pids, self, ...rest } = JSON.parse(text) as Record<string, unknown>
  assert.equal(pids, 2)
  assert.equal(self, false)
  assert.deepEqual(rest, EXPECTED)
  assert.equal(readFileSync(join(folder, 'ab'), 'utf8'), 'ab')
  assert.deepEqual(readdirSync(nodes), [])
})

test('files and directories of all kinds travel to the nodes and back', { timeout: 60_000 }, async () => {
  const several = await run('all')
  assert.equal(several.code, 0, several.stderr)
  const alone = await run('all', ['--nodes', 'here'])
  assert.equal(alone.code, 0, alone.stderr)
  const { places, areApart, ...rest } = JSON.parse(several.stdout) as Record<string, unknown>
  assert.equal(places, 2)
  assert.equal(areApart, true)
  const { places: _, areApart: __, ...expected } = JSON.parse(alone.stdout) as Record<string, unknown>
  assert.deepEqual(rest, expected)
})

test('a node that dies with what its task wrote costs no retry', { timeout: 60_000 }, async () => {
  const { code, stdout, stderr } = await run('dies', ['--nodes', 'local:3x1'])
  assert.equal(code, 0, stderr)
  assert.deepEqual(JSON.parse(stdout), ['WORD', 'WORD', 'WORD'])
  assert.match(stderr, /was lost/)
})

test('a file that main writes again is sent again', { timeout: 60_000 }, async () => {
  const { code, stdout, stderr } = await run('changes')
  assert.equal(code, 0, stderr)
  assert.deepEqual((JSON.parse(stdout) as unknown[]).slice(0, 2), [3, 5])
})

test('what a program printed on its node is told with its failure', { timeout: 60_000 }, async () => {
  const { code, stderr, stdout } = await run('fails')
  assert.equal(code, 1)
  assert.match(stderr + stdout, /said of it/)
})

test('logs of nodes are kept with the run', { timeout: 60_000 }, async () => {
  const { code, at, stderr } = await run('says')
  assert.equal(code, 0, stderr)
  const logs = await millrace(at, ['logs', 'says'])
  assert.match(logs.stdout, /it was said/, logs.stderr)
})

test('missing inputs and outputs are told as on one machine', { timeout: 60_000 }, async () => {
  const forgets = await run('forgets')
  assert.match(forgets.stderr + forgets.stdout, /ended without writing .*none/)
  const missing = await run('missing')
  assert.match(missing.stderr + missing.stdout, /nothing does not exist/)
})
