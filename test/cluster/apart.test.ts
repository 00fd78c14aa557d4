import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { EXPECTED, arguments_, folder, start, until } from './program.ts'

/** Agents with folders of their own, as on machines that share no disk. */
const nodes = join(folder, 'nodes')
mkdirSync(nodes)
const program = join(import.meta.dirname, 'apart', 'program.mjs')
const root = join(import.meta.dirname, '..', '..')
const cache = join(folder, 'cache')
const variables = {
  MILLRACE_NODE_FOLDER: nodes,
  MILLRACE_INDEX: join(root, 'dist', 'index.js'),
  XDG_CACHE_HOME: cache,
}

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

// The streaming library is compiled into the new cache.
test('without a shared folder a program has the results of one machine', { timeout: 240_000 }, async () => {
  const words = [process.execPath, ...arguments_('local:2', 'all')]
  const { code, text, said } = await start(words, { MILLRACE_NODE_FOLDER: nodes, XDG_CACHE_HOME: cache })
    .ended
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

test('the program is sent once, with its modules and packages', { timeout: 60_000 }, async () => {
  const own = makeFolder(
    {
      'app.ts': `
import { task, main, waitOn } from 'millrace'
import { word } from 'words'
import { linked } from '@mine/linked'
import { Pair } from './lib/pair.js'
export { Pair }
export const where = task({ name: 'where' }, (a: number): [string, string, string, Pair] => [import.meta.url, word, linked, new Pair(a, 2)])
main(async () => {
  const all = await waitOn([1, 2, 3, 4].map(i => where(i)))
  console.log(JSON.stringify(all.map(([url, ...rest]) => [url, ...rest, rest[2] instanceof Pair, rest[2].sum()])))
})
`,
      'lib/pair.ts': `
export class Pair {
  constructor(readonly a: number, readonly b: number) {}
  sum(): number { return this.a + this.b }
}
`,
      'node_modules/words/package.json': '{"name":"words","main":"main.cjs","dependencies":{"more":"1"}}',
      'node_modules/words/main.cjs': "exports.word = require('more').text",
      'node_modules/more/package.json': '{"name":"more","main":"./lib"}',
      'node_modules/more/lib/index.js':
        "exports.text = require('fs').readFileSync(__dirname + '/data.txt', 'utf8')",
      'node_modules/more/lib/data.txt': 'word',
      'linked/package.json': '{"name":"@mine/linked","type":"module","exports":"./index.js"}',
      'linked/index.js': "export const linked = 'linked'",
    },
    { name: 'project' },
  )
  mkdirSync(join(own, 'node_modules', '@mine'))
  symlinkSync(join(own, 'linked'), join(own, 'node_modules', '@mine', 'linked'))
  const words = ['run', 'app.ts', '--nodes', 'local:2x1', '--no-journal', '--progress', 'none']
  const kept = join(cache, 'millrace', 'programs')
  const before = existsSync(kept) ? readdirSync(kept) : []
  const first = await millrace(own, words, variables)
  assert.equal(first.code, 0, first.stderr)
  const added = readdirSync(kept).filter(name => !before.includes(name))
  assert.equal(added.length, 1)
  const [program = ''] = added
  const expected = [1, 2, 3, 4].map(a => ['word', 'linked', { a, b: 2 }, true, a + 2])
  const seen = (JSON.parse(first.stdout) as [string, ...unknown[]][]).map(([url, ...rest]) => {
    assert.ok(url.includes(`/programs/${program}/`), url)
    return rest
  })
  assert.deepEqual(seen, expected)
  // The second run finds it, unless somebody has changed what is there.
  const inside = join(kept, program, own)
  const { ino } = statSync(join(inside, 'app.ts'))
  assert.equal((await millrace(own, words, variables)).code, 0)
  assert.equal(statSync(join(inside, 'app.ts')).ino, ino)
  writeFileSync(join(inside, 'lib', 'pair.ts'), 'export class Pair {}')
  const again = await millrace(own, words, variables)
  assert.equal(again.code, 0, again.stderr)
  assert.notEqual(statSync(join(inside, 'app.ts')).ino, ino)
})
