import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { makeFolder, millrace } from './folder.ts'

const PROGRAM = `import { writeFileSync } from 'node:fs'
import { FILE_IN, FILE_OUT, command, main, task } from 'millrace'
export const index = task({ name: 'index', params: [FILE_OUT] }, path => {
  writeFileSync(path, '')
  writeFileSync(path + '.idx', '')
})
export const both = task({ name: 'both', params: [FILE_OUT, FILE_OUT] }, (a, b) => {
  writeFileSync(a, '')
  writeFileSync(b, '')
})
export const touch = command({ name: 'touch', params: [FILE_OUT, FILE_OUT] }, (a, b) => ['touch', a, b])
main(() => {
  if (process.argv[2] === 'index') for (const name of ['a', 'b', 'a']) index(name)
  both('c', 'd')
  touch('e', 'f')
})`

test('what a task writes beside its output without declaring it is named when it is removed', async () => {
  const folder = makeFolder({ 'app.mjs': PROGRAM })
  const { stderr, code } = await millrace(folder, ['run', 'app.mjs', 'index'])
  assert.equal(code, 0)
  const warnings = stderr.split('\n').filter(line => line.startsWith('warning '))
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] as string, /index#\d wrote \w\.idx beside its output \w .*FILE_OUT/)
  assert.deepEqual(
    readdirSync(folder).filter(name => name.length === 1 || name.endsWith('.idx')),
    ['a', 'b', 'c', 'd', 'e', 'f'],
  )
})

test('nothing is said of outputs that are declared', async () => {
  const { stderr, code } = await millrace(makeFolder({ 'app.mjs': PROGRAM }), ['run', 'app.mjs'])
  assert.equal(code, 0)
  assert.doesNotMatch(stderr, /^warning /m)
})

const FLOW = `
import { rule, sh, target } from 'millrace/flow'
rule('bam/{s}.bam', [], { name: 'sort' }, ({ out }) => sh\`echo x > \${out}; echo y > \${out}.csi\`)
rule('{s}.txt', ['bam/{s}.bam'], { name: 'call' }, ({ out, in: [bam] }) => sh\`cat \${bam}.csi > \${out}\`)
target('all', ['s1.txt'])
`

test('of a rule it is said what to write, before the task that misses the file fails', async () => {
  const { stderr } = await millrace(makeFolder({ 'flow.ts': FLOW }), ['make'])
  const warning = stderr.indexOf("Write rule(['bam/{s}.bam', 'bam/{s}.bam.csi'], …)")
  assert.ok(warning > 0, stderr)
  assert.ok(warning < stderr.indexOf('failed call'), stderr)
  assert.match(
    stderr,
    /warning sort#1 s=s1 wrote s1\.bam\.csi beside its output s1\.bam without declaring it/,
  )
})
