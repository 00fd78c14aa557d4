import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Running, makeFolder, millrace } from '../cli/folder.ts'
import { make, read } from './flows.ts'

const folder = makeFolder({
  'flow.ts': `import { rule, sh, target } from 'millrace/flow'
rule('out/{n}.txt', ['in/{n}.txt'], ({ out, in: [text] }) => sh\`cp \${text} \${out} && echo \${text} >> runs\`)
rule('bad.txt', [], ({ out }) => sh\`echo half > \${out}; false\`)
rule('sub/bad.txt', [], { name: 'elsewhere' }, ({ out }) => ['sh', '-c', 'echo half > "$0"; exit 3', out])
target('all', ['out/a.txt', 'out/b.txt', 'out/c.txt'])
`,
  'in/a.txt': 'a',
  'in/b.txt': 'b'.repeat(3 * 2 ** 20),
  'in/c.txt': 'c',
})
const runs = (): string[] =>
  existsSync(join(folder, 'runs')) ? read(folder, 'runs').trim().split('\n').sort() : []

test('--cache and --graph with a path that can never be one are errors before anything is made', async () => {
  mkdirSync(join(folder, 'there'))
  for (const words of [
    ['--cache', '/proc/millrace/cache'],
    ['--graph', 'nowhere/graph.dot'],
    ['--graph', 'there'],
  ]) {
    const { code, stderr } = await millrace(folder, ['make', ...words])
    assert.equal(code, 2, stderr)
    assert.match(stderr, /cannot be (used|written): .*\n.*MR_OPTION/)
  }
  assert.deepEqual(runs(), [])
})

test('--touch takes what is there, small and large, and says what is missing', async () => {
  await make(folder, ['all'])
  assert.deepEqual(runs(), ['in/a.txt', 'in/b.txt', 'in/c.txt'])
  rmSync(join(folder, '.millrace'), { recursive: true })
  rmSync(join(folder, 'out/c.txt'))
  const { stderr } = await make(folder, ['--touch'])
  assert.match(stderr, /2 tasks taken as up to date/)
  assert.match(stderr, /out\/c.txt does not exist/)
  // What was taken counts: a new time alone makes nothing again, new content does.
  for (const name of ['in/a.txt', 'in/b.txt', 'out/b.txt']) utimesSync(join(folder, name), 1, 1)
  await make(folder)
  assert.deepEqual(runs(), ['in/a.txt', 'in/b.txt', 'in/c.txt', 'in/c.txt'])
  writeFileSync(join(folder, 'in/b.txt'), 'new')
  await make(folder)
  assert.deepEqual(runs(), ['in/a.txt', 'in/b.txt', 'in/b.txt', 'in/c.txt', 'in/c.txt'])
  assert.equal(readFileSync(join(folder, 'out/b.txt'), 'utf8'), 'new')
})

test('a failure is shown in full once, with a command that can be typed again', async () => {
  for (const [target, command] of [
    ['bad.txt', /echo half > bad\.txt; false/],
    ['sub/bad.txt', /'echo half > "\$0"; exit 3' sub\/bad\.txt/],
  ] as const) {
    const { code, stderr } = await millrace(folder, ['make', target], { MILLRACE_PROGRESS: 'plain' })
    assert.equal(code, 1)
    const shown = stderr.split('\n').filter(line => line.includes('rerun'))
    assert.equal(shown.length, 1, stderr)
    assert.match(shown[0] ?? '', command)
    assert.doesNotMatch(stderr, /\.millrace-/)
  }
})

test('all is made also when what is printed is not read', async () => {
  rmSync(join(folder, 'out'), { recursive: true, force: true })
  const running = new Running(folder, ['make', 'all'], { MILLRACE_PROGRESS: 'plain' })
  running.process.stdout.destroy()
  running.process.stderr.destroy()
  const { code } = await running.ended
  assert.equal(code, 0)
  assert.equal(read(folder, 'out/c.txt'), 'c')
})
