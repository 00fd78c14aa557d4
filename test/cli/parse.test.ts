import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { parse } from '../../src/cli/parse.ts'
import type { CommandSpec, Given } from '../../src/cli/spec.ts'
import { makeFolder, millrace } from './folder.ts'

const parseLine = (line: string): Given => {
  const [name, ...words] = line.split(' ')
  return parse(COMMANDS.find(command => command.name === name) as CommandSpec, words)
}

const understood: [
  string,
  string,
  Partial<{ flags: object; values: object; operands: string[]; rest: string[] }>,
][] = [
  ['options before the program', 'run --cpus 2 app.ts', { values: { cpus: ['2'] }, operands: ['app.ts'] }],
  ['options after the program', 'run app.ts --cpus=2', { values: { cpus: ['2'] }, operands: ['app.ts'] }],
  [
    'the last of two values',
    'run app.ts --cpus 2 --cpus 3',
    { values: { cpus: ['3'] }, operands: ['app.ts'] },
  ],
  ['all of a repeated one', 'run a.ts --tag x --tag y', { values: { tag: ['x', 'y'] }, operands: ['a.ts'] }],
  [
    'flags both ways',
    'run a.ts --color --no-journal',
    { flags: { color: true, journal: false }, operands: ['a.ts'] },
  ],
  ['arguments of the program', 'run a.ts -- --cpus x', { operands: ['a.ts'], rest: ['--cpus', 'x'] }],
  ['plain arguments also without --', 'run a.ts b.csv', { operands: ['a.ts', 'b.csv'] }],
  ['help of a program is its own', 'run a.ts -- --help', { operands: ['a.ts'], rest: ['--help'] }],
  ['an optional operand', 'story align#2 last', { operands: ['align#2', 'last'] }],
]
for (const [what, line, wanted] of understood) {
  test(`understands ${what}: ${line}`, () => {
    const { flags, values, operands, rest } = parseLine(line)
    assert.deepEqual(
      { flags: Object.fromEntries(flags), values: Object.fromEntries(values), operands, rest },
      { flags: {}, values: {}, operands: [], rest: [], ...wanted },
    )
  })
}

const refused: [string, string, RegExp][] = [
  ['run app.ts --polcy lifo', 'MR_OPTION', /no option --polcy; did you mean --policy\?/],
  ['run app.ts --no-jurnal', 'MR_OPTION', /did you mean --no-journal\?/],
  ['run app.ts --size 3', 'MR_OPTION', /no option --size\n.*come after --/],
  ['run app.ts --progress liv', 'MR_OPTION', /did you mean live\?\n.*live, plain, json, none/],
  ['run app.ts --progress', 'MR_OPTION', /needs a value: --progress MODE\n.*live, plain, json, none/],
  ['run app.ts --policy --json', 'MR_OPTION', /--policy needs a value/],
  ['run app.ts --json=yes', 'MR_OPTION', /--json takes no value/],
  ['run app.ts --cpus 0', 'MR_UNIT', /not a whole number from 1/],
  ['run app.ts --cpus two', 'MR_UNIT', /not a whole number from 1/],
  ['run app.ts --memory 16XB', 'MR_UNIT', /is not a size\n.*16GB/],
  ['run', 'MR_OPTION', /needs a PROGRAM\n.*Usage: millrace run/],
  ['story', 'MR_OPTION', /needs a TASK/],
  ['show one two', 'MR_OPTION', /does not know what to do with 'two'/],
  ['doctor --jsn', 'MR_OPTION', /did you mean --json\?/],
]
for (const [line, code, wanted] of refused) {
  test(`refuses ${line}`, () => {
    assert.throws(
      () => parseLine(line),
      (error: Error & { code: string }) => error.code === code && wanted.test(error.message),
    )
  })
}

test('what is wrong with a command line is said on stderr, with exit code 2', async () => {
  const folder = makeFolder({ 'app.mjs': '', 'lib/other.ts': '' })
  const cases: [string[], RegExp][] = [
    [['rnu'], /no command rnu; did you mean `millrace run`\?/],
    [['app.mjs'], /did you mean `millrace run app.mjs`\?/],
    [['--hlp'], /no option --hlp; did you mean `millrace --help`\?/],
    [['help', 'stroy'], /did you mean `millrace story`\?/],
    [['run', 'ap.mjs'], /no file ap.mjs; did you mean app.mjs\?/],
    [['run', 'app'], /no file app; did you mean app.mjs\?/],
    [['run', 'lib'], /lib is a folder\n.*lib\/other.ts/],
    [['run', 'package.json'], /not a program/],
    [
      ['run', 'app.mjs', '--policy', 'lfo'],
      /no policy called 'lfo'; did you mean lifo\?\n.*fifo-data.*\[MR_POLICY\]/,
    ],
    [['run', 'app.mjs', '--policy', './no.ts'], /no file \.\/no\.ts.*\n.*\[MR_POLICY\]/],
    [['run', 'app.mjs', '--policy', './app.mjs'], /does not export a policy\n.*score/],
    [['run', 'app.mjs', '--trace', 'no/run.json'], /no folder .*no\n/],
    [['run', 'app.mjs', '--trace', 'run.json', '--no-journal'], /--no-journal leaves out/],
    [['run', 'app.mjs', '--json', '--progress', 'live'], /say different things/],
  ]
  for (const [args, wanted] of cases) {
    const { code, stdout, stderr } = await millrace(folder, args)
    assert.equal(code, 2, args.join(' '))
    assert.equal(stdout, '')
    assert.match(stderr, wanted)
    assert.match(stderr, /\[MR_\w+\]\n$/)
  }
})
