import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { EXPECTED, arguments_, folder, start } from './program.ts'

/** Agents with folders of their own, as on machines that share no disk. */
const nodes = join(folder, 'nodes')
mkdirSync(nodes)

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
