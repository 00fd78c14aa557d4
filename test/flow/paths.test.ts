import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { Pattern } from '../../src/flow/language/pattern.ts'
import { makeFolder, millrace } from '../cli/folder.ts'
import { make, read } from './flows.ts'

const rules = (text: string): string => `import { dir, rule, sh, target, temp } from 'millrace/flow'\n${text}`

test('a file has one name, however a rule, a target or a person writes it', async () => {
  const folder = makeFolder({
    source: '1\n',
    'flow.mjs': rules(`
const here = process.cwd()
rule(here + '/o/{n}.txt', here + '/source', ({ out, in: from }) => ['cp', from, out])
rule('x/../joined.txt', ['./o//1.txt', here + '/o/2.txt'], ({ out, in: files }) => sh\`cat \${files} > \${out}\`)
rule(dir('folder/{n}/'), 'joined.txt', ({ out, in: from }) => ['cp', from, out])
target('all', [here + '/joined.txt', '../' + here.split('/').at(-1) + '/folder/a/joined.txt'])`),
  })
  await make(folder)
  assert.equal(read(folder, 'folder/a/joined.txt'), '1\n1\n')
  const link = join(makeFolder({}), 'link')
  symlinkSync(folder, link)
  const names = [
    'o/1.txt',
    `${folder}/o/2.txt`,
    `../${basename(folder)}/joined.txt`,
    'folder/a/',
    `${link}/joined.txt`,
  ]
  assert.match((await make(folder, names)).stderr, /nothing to do/)
  await make(folder, [join(link, 'o', '3.txt')])
  assert.equal(read(folder, 'o/3.txt'), '1\n')
})

test('rules that write the same file, or into a directory of another, are told', async () => {
  for (const [text, message] of [
    [
      `rule('a.txt', [], ({ out }) => ['touch', out])
rule(['{n}.txt', '{n}.log'], [], ({ out }) => ['touch', ...out])
target('all', ['a.log'])`,
      /2 rules can make a\.txt/,
    ],
    [
      `rule(['{n}.a', '{n}.both'], [], ({ out }) => ['touch', ...out])
rule(['{n}.b', '{n}.both'], [], ({ out }) => ['touch', ...out])
target('all', ['x.a', 'x.b'])`,
      /2 rules can make x\.both/,
    ],
    [
      `rule(dir('d'), [], ({ out }) => ['touch', out + '/a'])
rule('d/b', [], ({ out }) => ['touch', out])
target('all', ['d', 'd/b'])`,
      /d\/b is made by rule d\/b .*in the directory d that rule d .*makes as a whole/,
    ],
  ] as const) {
    const ended = await millrace(makeFolder({ 'flow.mjs': rules(text) }), ['make'])
    assert.equal(ended.code, 1)
    assert.match(ended.stderr, message)
  }
})

test('a constraint is an expression as it is, with groups, classes and braces', () => {
  const matched = (pattern: string, path: string): unknown => new Pattern(pattern).match(path)
  assert.deepEqual(matched('o/{a:[(]x[)]}-{b:[0-9]+}', 'o/(x)-5'), { a: '(x)', b: '5' })
  assert.equal(matched('o/{a:[(]x[)]}-{b:[0-9]+}', 'o/?x)-5'), null)
  assert.deepEqual(matched('{a:(x|y)\\\\(z)}-{b:(1|2)+}', 'y\\z-21'), { a: 'y\\z', b: '21' })
  assert.deepEqual(matched('{y:(?<c>[0-9]){4}}-{y}1', '2020-20201'), { y: '2020' })
  assert.equal(matched('{y:[0-9]{4}}-{y}', '2020-2021'), null)
})

test('a constraint in one output holds for all', async () => {
  const folder = makeFolder({
    'flow.mjs': rules("rule(['{n:[0-9]+}.a', '{n}.b'], [], ({ out }) => ['touch', ...out])"),
  })
  await make(folder, ['12.b'])
  assert.match((await millrace(folder, ['make', 'x.b'])).stderr, /x\.b does not exist and no rule makes it/)
})

test('a list of targets may name other targets, also a file of its own name', async () => {
  const folder = makeFolder({
    'flow.mjs': rules(`
rule('{n}', [], ({ out }) => ['touch', out])
target('all', ['one', 'two', 'b'])
target('one', ['a', 'all'])
target('two', async ({ need }) => void (await need('c')))
target('b', ['b'])`),
  })
  await make(folder)
  for (const file of ['a', 'b', 'c']) assert.equal(read(folder, file), '')
})

test('what Millrace keeps in a folder is not content of that folder', async () => {
  const elsewhere = JSON.stringify(join(makeFolder({}), 'out'))
  const folder = makeFolder({ 'flow.mjs': rules(`rule(${elsewhere}, '.', ({ out }) => ['touch', out])`) })
  await make(folder)
  assert.match((await make(folder)).stderr, /nothing to do/)
})
