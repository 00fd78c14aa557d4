// Tasks and rules that read files as they grow, with writers and readers on nodes that share neither folders nor memory. Each node
// has one CPU, so they must be apart; they prove that they run at one time.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { toolsOrReason } from '../stream/support.ts'
import { folder, until } from './program.ts'

const { skip } = await toolsOrReason()

const nodes = join(folder, 'nodes')
mkdirSync(nodes)
const program = join(import.meta.dirname, 'growing', 'program.mjs')
const root = join(import.meta.dirname, '..', '..')
const variables = {
  MILLRACE_NODE_FOLDER: nodes,
  MILLRACE_INDEX: join(root, 'dist', 'index.js'),
  XDG_CACHE_HOME: join(folder, 'cache'),
}

async function run(mode: string, where = 'local:2x1', more: Record<string, string> = {}) {
  const at = mkdtempSync(join(folder, `${mode}-`))
  const marks = mkdtempSync(join(folder, 'marks-'))
  const words = ['run', program, '--nodes', where, '--progress', 'plain', '--', mode, marks]
  const { code, stdout, stderr } = await millrace(at, words, { ...variables, ...more })
  assert.equal(code, 0, stderr)
  // What an agent that was killed has left is removed by its watchdog.
  await until(() => readdirSync(nodes).length === 0)
  const left = readdirSync(at).filter(name => name.startsWith('.millrace-') || name.endsWith('.part'))
  assert.deepEqual(left, [])
  return { result: JSON.parse(stdout) as unknown, stderr }
}

/** Of boards and folders in memory that were made by nodes and are not there any more. */
const inMemory = (): string[] =>
  readdirSync('/dev/shm').filter(name => name.startsWith('millrace') && /\btask\b|streams/.test(name))

describe('commands that read growing files on other nodes', { skip, timeout: 240_000 }, () => {
  test('a reader gets what was written so far, and a function the whole', async () => {
    const { result } = await run('pair')
    assert.deepEqual(result, ['got 1\n2\n', '1\n2\n', 2, 4])
  })

  test('a chain of three goes over three nodes', async () => {
    const { result } = await run('chain', 'local:3x1')
    assert.deepEqual(result, ['11\n21\n', '10\n20\n', '1\n2\n', 3])
  })

  test('two readers are on two nodes', async () => {
    const { result } = await run('readers', 'local:3x1')
    assert.deepEqual(result, ['2\n', '2\n', 3])
  })

  test('a reader that is called late gets all from the beginning', async () => {
    const { result } = await run('late')
    assert.deepEqual(result, ['200000\nend\n', 2])
  })

  test('a pair stays on one node while that has CPUs', async () => {
    const { result } = await run('pair', 'local:2x2')
    assert.deepEqual(result, ['got 1\n2\n', '1\n2\n', 1, 4])
  })

  test('standard input and output can be streams', async () => {
    assert.deepEqual((await run('standard')).result, ['2\n'])
  })

  test('megabytes arrive as they were written', async () => {
    const { result } = await run('large')
    assert.deepEqual(result, ['603ea3c5a8c80940ca761f015046e950  -\n', 2])
  })

  test('many pairs have the results of one machine, with all ways to be complete', async () => {
    const expected = Array.from({ length: 12 }, (_, i) => 1001 - i)
    assert.deepEqual((await run('many', 'local:3x1')).result, expected)
  })

  test('a writer that fails takes its reader along, and nothing half is left', async () => {
    assert.deepEqual((await run('fails')).result, ['TaskError', 'CancelledError', false, false])
  })

  test('a writer that is tried again has a reader that begins again', async () => {
    const { result, stderr } = await run('retries')
    assert.deepEqual(result, ['right\n', 'right\n'])
    assert.match(stderr, /retry step#2/)
  })

  test('a writer that makes nothing is told as on one machine', async () => {
    const [first, second] = (await run('missing')).result as [string, string]
    assert.match(first, /begin#1 ended without writing/)
    assert.match(second, /step#2 was cancelled/)
  })

  test('the node of the writer dies: both begin again', async () => {
    const { result, stderr } = await run('writerDies', 'local:3x1')
    assert.deepEqual(result, ['right\n', 'right\n'])
    assert.match(stderr, /was lost/)
    assert.match(stderr, /retry begin#1/)
    assert.match(stderr, /retry step#2/)
  })

  test('the node of the reader dies: the reader begins again', async () => {
    const { result, stderr } = await run('readerDies', 'local:3x1')
    assert.deepEqual(result, [3893, 3893])
    assert.match(stderr, /retry step#2/)
    assert.doesNotMatch(stderr, /retry begin#1/)
  })

  test('rules do the same', async () => {
    const at = makeFolder({
      'flow.ts': `
import { rule, sh, stream, target } from 'millrace/flow'
rule(stream('numbers.txt', { commit: 'on_close', fire: 'no_update' }), ['in.txt'], ({ out, in: [start] }) =>
  sh\`{ cat \${start}; while [ ! -e \${process.env.MARKS}/seen ]; do sleep 0.01; done; echo 2; } > \${out}\`)
rule('double.txt', ['numbers.txt'], ({ out, in: [from] }) =>
  sh\`{ dd bs=2 count=1 2> /dev/null; : > \${process.env.MARKS}/seen; sed 's/2/4/'; } < \${from} > \${out}\`)
target('all', ['double.txt'])
`,
    })
    writeFileSync(join(at, 'in.txt'), '7\n')
    const more = { ...variables, MARKS: mkdtempSync(join(folder, 'marks-')) }
    const words = ['make', 'all', '--nodes', 'local:2x1']
    const made = await millrace(at, words, more)
    assert.equal(made.code, 0, made.stderr)
    assert.equal(readFileSync(join(at, 'numbers.txt'), 'utf8'), '7\n2\n')
    assert.equal(readFileSync(join(at, 'double.txt'), 'utf8'), '7\n4\n')
    assert.match((await millrace(at, words, more)).stderr, /nothing to do/)
  })

  test('where a node has no compiler, files are read when they are complete', async () => {
    const expected = Array.from({ length: 12 }, (_, i) => 1001 - i)
    const { result, stderr } = await run('many', 'local:3x1', {
      CC: '/no/such/compiler',
      XDG_CACHE_HOME: join(folder, 'no-cache'),
    })
    assert.deepEqual(result, expected)
    assert.match(stderr, /has no C compiler: files of stream\(…\) are read when they are complete/)
  })

  test('nothing is left in memory', async () => {
    const before = new Set(inMemory())
    await run('pair')
    await until(() => inMemory().every(name => before.has(name)))
  })
})
