import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { make, read } from './flows.ts'

const FLOW = `
import { expand, rule, settings, table, target } from 'millrace/flow'
import { writeFile } from 'node:fs/promises'
const { suffix } = settings<{ suffix: string }>('config.yaml')
const samples = table('samples.csv', ['name', 'text'])
for (const { name, text } of samples) {
  rule('out/' + name, [], async ({ out }) => { await writeFile(out, text + suffix) })
}
target('all', expand('out/{name}', { name: samples.map(({ name }) => name) }))
`

const CSV = 'name,text\r\na,plain\n"b","with, comma ""quoted""\nand line"\n\nc, spaces \n'

test('settings and tables are read, and count as inputs of functions', async () => {
  const folder = makeFolder({ 'flow.ts': FLOW, 'config.yaml': 'suffix: "!"\n', 'samples.csv': CSV })
  await make(folder)
  assert.equal(read(folder, 'out/a'), 'plain!')
  assert.equal(read(folder, 'out/b'), 'with, comma "quoted"\nand line!')
  assert.equal(read(folder, 'out/c'), 'spaces!')
  assert.match((await make(folder)).stderr, /nothing to do/)
  writeFileSync(join(folder, 'config.yaml'), 'suffix: "?"\n')
  await make(folder)
  assert.equal(read(folder, 'out/a'), 'plain?')
})

for (const [what, files, message] of [
  [
    'YAML that is malformed',
    { 'config.yaml': 'a: 1\nsuffix: [1\n' },
    /config\.yaml:3:1: .*\[MR_FLOW_DATA\]/s,
  ],
  ['a missing file', { 'config.yaml': null }, /config\.yaml cannot be read: it does not exist/],
  ['a missing column', { 'samples.csv': 'name\na\n' }, /samples\.csv:1:1: there is no column 'text'/],
  [
    'a row that is too long',
    { 'samples.csv': 'name,text\na,b\nc,d,e\n' },
    /samples\.csv:3:1: the row has 3 cells, and the table 2 columns/,
  ],
  [
    'a quote without end',
    { 'samples.csv': 'name,text\na,"b\n' },
    /samples\.csv:2:1: a quoted cell has no end/,
  ],
  ['two columns of one name', { 'samples.csv': 'name,text,name\n' }, /two columns are called 'name'/],
  ['an empty table', { 'samples.csv': '' }, /the table is empty/],
] as const) {
  test(`${what} is reported with its place`, async () => {
    const all: Record<string, string | null> = {
      'flow.ts': FLOW,
      'config.yaml': 'suffix: "!"\n',
      'samples.csv': CSV,
      ...files,
    }
    const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== null)
    const { code, stderr } = await millrace(makeFolder(Object.fromEntries(given)), ['make'])
    assert.notEqual(code, 0)
    assert.match(stderr, message)
  })
}

test('constraints of a whole file decide which rule makes a file', async () => {
  const folder = makeFolder({
    'flow.ts': `
import { constrain, rule, sh } from 'millrace/flow'
constrain({ sample: '[A-Z]+', number: /[0-9]+/ })
rule('{sample}.out', [], ({ out, wildcards }) => sh\`echo letters \${wildcards.sample} > \${out}\`)
rule('{number}.out', [], ({ out, wildcards }) => sh\`echo digits \${wildcards.number} > \${out}\`)
rule('{sample:x[0-9]}.out', [], ({ out }) => sh\`echo own > \${out}\`)
`,
  })
  await make(folder, ['ABC.out', '42.out', 'x1.out'])
  assert.equal(read(folder, 'ABC.out'), 'letters ABC\n')
  assert.equal(read(folder, '42.out'), 'digits 42\n')
  assert.equal(read(folder, 'x1.out'), 'own\n')
})

const COUNTING = `
import { rule, sh, target } from 'millrace/flow'
rule('a', 'source', { name: 'first' }, ({ out, in: from }) => sh\`cat \${from} > \${out}; echo a >> log\`)
rule('b', 'a', { name: 'second' }, ({ out, in: from }) => sh\`cat \${from} > \${out}; echo b >> log\`)
rule('c', 'b', { name: 'third' }, ({ out, in: from }) => sh\`cat \${from} > \${out}; echo c >> log\`)
target('all', ['c'])
`

test('one rule, or only what was asked for, can be forced; rules and targets are listed', async () => {
  const folder = makeFolder({ 'flow.ts': COUNTING, source: '1\n' })
  await make(folder)
  assert.equal(read(folder, 'log'), 'a\nb\nc\n')
  await make(folder, ['--force-rule', 'second'])
  // What is made again as it was makes nothing else again.
  assert.equal(read(folder, 'log'), 'a\nb\nc\nb\n')
  await make(folder, ['c', '--force-only'])
  assert.equal(read(folder, 'log'), 'a\nb\nc\nb\nc\n')
  const wrong = await millrace(folder, ['make', '--force-rule', 'secnd'])
  assert.match(wrong.stderr, /no rule 'secnd'; did you mean 'second'\?/)
  const { stdout } = await make(folder, ['--list'])
  assert.match(
    stdout,
    /^targets\n {2}all {2}\(1 file, flow\.ts:6:1\)\nrules\n {2}first: a {2}\(flow\.ts:3:1\)\n/,
  )
})
