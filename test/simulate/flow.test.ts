import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'

const folder = makeFolder({
  'p.yaml': `
nodes: [{ name: n, cpus: 4, storage: [{ name: disk, bandwidth: 100MB/s }] }]`,
  'raw/a': 'x'.repeat(1000),
  'raw/b': 'y'.repeat(1000),
  'flow.ts': `
import { dir, expand, param, rule, sh, target } from 'millrace/flow'
const parts = param('parts', 4)
rule('proj/{name}', 'raw/{name}', { cost: { compute: ({ name }) => (name === 'a' ? 10 : 20), writes: '100MB' } },
  ({ out, in: from }) => sh\`never \${from} \${out}\`)
rule('part/{i}', ['proj/a', 'proj/b'], { cost: { compute: '5s', writes: 0 } }, ({ out }) => sh\`never \${out}\`)
rule(dir('tree'), 'proj/a', { cost: { compute: 1 } }, ({ out }) => sh\`never \${out}\`)
rule('leaf', 'tree/leaf', { cost: { compute: 1 } }, ({ out }) => sh\`never \${out}\`)
target('all', async ({ need }) => {
  await need('proj/a')
  rule('{name:late}', 'proj/a', { cost: { compute: 3 } }, ({ out }) => sh\`never \${out}\`)
  await need([...expand('part/{i}', { i: Array.from({ length: parts }, (_, i) => i) }), 'late'])
})
`,
  'wrong.ts': `
import { rule, sh } from 'millrace/flow'
rule('out', 'nothing', { cost: { compute: 1 } }, ({ out }) => sh\`never \${out}\`)
`,
  'bare.ts': `
import { rule, sh } from 'millrace/flow'
rule('out', [], ({ out }) => sh\`never \${out}\`)
`,
  'circle.ts': `
import { rule, sh } from 'millrace/flow'
rule('one', 'two', { cost: { compute: 1 } }, ({ out }) => sh\`never \${out}\`)
rule('two', 'one', { cost: { compute: 1 } }, ({ out }) => sh\`never \${out}\`)
`,
})

const spans = async (...words: string[]): Promise<number[]> => {
  const { stdout, stderr } = await millrace(folder, ['simulate', '--json', '--no-journal', ...words])
  assert.notEqual(stdout, '', stderr)
  return stdout
    .trim()
    .split('\n')
    .map(line => Number((JSON.parse(line) as { makespan: number }).makespan.toFixed(3)))
}

test('a workflow file is simulated: rules by their cost, functions of targets, and what they add', async () => {
  // proj/a: 10 s and 1 s of writing, and the target waits for it; proj/b: 20 and 1; then four parts read both (4 times 200 MB at 100 MB/s) and take 5.
  const [all, two] = await spans('flow.ts', '--platform', 'p.yaml', '--sweep', 'cpus=4,2')
  assert.equal(all, 11 + 21 + 8 + 5)
  assert(two && two > 45, 'fewer CPUs take longer, and rules that were added are not there twice')
})

test('of a workflow one can ask for a file, also one inside a folder that a rule makes, and give parameters', async () => {
  assert.deepEqual(await spans('flow.ts', 'leaf', '--platform', 'p.yaml'), [11 + 1 + 1 + 1])
  const [one] = await spans('flow.ts', '--platform', 'p.yaml', '--', 'parts=1')
  assert.equal(one, 11 + 21 + 2 + 5)
})

const WRONG: [string, string, RegExp][] = [
  [
    'a source that is not there',
    'wrong.ts',
    /nothing does not exist and no rule makes it \(rule at wrong\.ts:3:1\)/,
  ],
  ['a rule without a cost', 'bare.ts', /rule out has no cost/],
  ['a circle', 'circle.ts', /is needed to make/],
]
for (const [what, file, message] of WRONG) {
  test(`in a workflow, ${what} is said with a way out`, async () => {
    const { code, stderr } = await millrace(folder, ['simulate', file, '--platform', 'p.yaml'])
    assert.notEqual(code, 0)
    assert.match(stderr, message)
  })
}
