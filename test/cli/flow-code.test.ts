import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { make, read } from '../flow/flows.ts'
import { makeFolder, millrace } from './folder.ts'

const FLOW = `import { rule, sh, target } from 'millrace/flow'
import { writeFileSync } from 'node:fs'
import { word, fail } from './lib/words.js'

interface Wish { readonly what: string }
const wish: Wish = { what: 'work' }
const shout = (text: string): string => text.toUpperCase()
rule('command', [], ({ out }) => sh\`echo \${word} > \${out}\`)
rule('function', [], async ({ out }) => {
  const inner = (text: string) => shout(text as string)
  writeFileSync(out, inner(wish.what))
})
rule('failing', [], async () => fail(wish.what))
target('all', ['command', 'function'])
`
const WORDS = `import type { Stats } from 'node:fs'
export const word = 'one'
export type Some = Stats

export const fail = (what: string): never => {
  throw new Error(\`no \${what}\`)
}
`
const folder = (): string => makeFolder({ 'flow.ts': FLOW, 'lib/words.ts': WORDS })
const kept = (at: string): string => join(at, '.millrace', 'flow', 'code', 'flow.ts')
const compiled = (at: string): string => readdirSync(kept(at)).find(name => name !== 'code.json') ?? ''

test('a workflow is compiled once, and again when anything that it is made of has changed', async () => {
  const at = folder()
  await make(at)
  const first = compiled(at)
  assert.notEqual(first, '')
  assert.match((await make(at)).stderr, /nothing to do/)
  assert.equal(compiled(at), first)
  writeFileSync(join(at, 'lib/words.ts'), WORDS.replace('one', 'two'))
  await make(at)
  assert.equal(read(at, 'command'), 'two\n')
  const second = compiled(at)
  assert.notEqual(second, first)
  writeFileSync(join(at, 'tsconfig.json'), '{ "compilerOptions": { "verbatimModuleSyntax": true } }')
  assert.match((await make(at)).stderr, /nothing to do/)
  const third = compiled(at)
  assert.notEqual(third, second)
  // A machine that loses power may leave files without their contents.
  truncateSync(join(kept(at), third, '0.mjs'))
  assert.match((await make(at)).stderr, /nothing to do/)
  writeFileSync(join(kept(at), 'code.json'), '{"sources": 1')
  assert.match((await make(at)).stderr, /nothing to do/)
})

test('compiled or loaded, a workflow has the same code, and errors name the same places', async () => {
  const at = folder()
  await make(at)
  const places = async (): Promise<string[]> => {
    const { code, stderr } = await millrace(at, ['make', 'failing'], { MILLRACE_PROGRESS: 'plain' })
    assert.equal(code, 1)
    return stderr.match(/(?:flow|words)\.ts:\d+:\d+/g) ?? []
  }
  const found = await places()
  assert.ok(found.includes('words.ts:6:9'), String(found))
  assert.ok(found.includes('flow.ts:13:33'), String(found))
  // Words that only the loader understands.
  appendFileSync(join(at, 'flow.ts'), '// import.meta\n')
  assert.match((await make(at)).stderr, /nothing to do/)
  assert.deepEqual(await places(), found)
})

test('a workflow that needs the loader gets it, and a dry run leaves nothing behind', async () => {
  const at = makeFolder({
    'flow.ts': `import { rule } from 'millrace/flow'
import { task } from 'millrace'
import data from './data.json' with { type: 'json' }
export const length = task({ name: 'length', params: [] }, () => 3)
rule('out', [], ({ out }) => ['touch', out])
rule(data.name, [], ({ out }) => ['cp', '/dev/null', out])`,
    'data.json': '{ "name": "other" }',
  })
  const { stdout } = await make(at, ['--dry-run'])
  assert.match(stdout, /^touch out$/m)
  assert.ok(!existsSync(join(at, '.millrace')))
  await make(at)
  assert.ok(existsSync(join(at, 'other')))
  assert.ok(!existsSync(kept(at)))
})

test('what goes wrong while a workflow is loaded is told with its place', async () => {
  for (const [text, said] of [
    ["rule('a', [], () => ['true']", /flow\.ts:4:0: ERROR: Expected/],
    ["throw new TypeError('not like this')", /TypeError: not like this\n.*flow\.ts:3:7/],
    ["import { nothing } from './nowhere.ts'\nnothing()", /nowhere\.ts, which cannot be found/],
    ["import { absent } from 'absent-package'\nabsent()", /package absent-package, which cannot be found/],
    ["import { nothing } from 'millrace/flow'\nnothing()", /nothing/],
  ] as const) {
    const at = makeFolder({
      'flow.ts': `import { rule } from 'millrace/flow'\nrule('x', [], () => [])\n${text}\n`,
    })
    const { code, stderr } = await millrace(at, ['make'])
    assert.equal(code, 1, stderr)
    assert.match(stderr, said)
    assert.equal(existsSync(join(at, 'x')), false)
  }
})
