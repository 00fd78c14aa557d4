import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from './folder.ts'

const ALIGN = `
import { FILE_OUT, IN, main, task, barrier } from 'millrace'
import { writeFileSync } from 'node:fs'
export const align = task({ name: 'align', label: sample => 's=' + sample.id }, sample => {
  if (sample.id === 's4') throw new Error('no reads')
  return sample.id
})
export const write = task({ name: 'write', params: [FILE_OUT, IN] }, (path, text) => writeFileSync(path, text))
export const use = task({ name: 'use', label: x => 'x is ' + x }, x => x)
export const outer = task({ name: 'outer' }, async () => { await align({ id: 'inner' }) })
main(async () => {
  write('made.txt', 'x')
  use(align({ id: 's1' }))
  await outer()
  await barrier()
  try { await align({ id: 's4' }) } catch (error) { console.log(error.task + '|' + error.shortMessage) }
})
`

test('tasks show what their label says, or the name of a file', async () => {
  const folder = makeFolder({ 'app.mjs': ALIGN })
  const { stdout, stderr } = await millrace(folder, [
    'run',
    'app.mjs',
    '--no-color',
    '--cpus',
    '1',
    '--trace',
    't.json',
  ])
  assert.match(stdout, /align#6\|align#6 s=s4 failed: no reads/)
  assert.match(stderr, /ok align#2 s=s1 /)
  assert.match(stderr, /ok write#1 made\.txt /)
  assert.match(stderr, /ok align#\d s=inner /)
  // A label over a future is left out.
  assert.match(stderr, /ok use#3 \d/)
  assert.match(stderr, /failed align#\d s=s4 at /)
  assert.match(readFileSync(join(folder, 't.json'), 'utf8'), /"name":"align s=s4"/)
  const story = await millrace(folder, ['story', 'align s=s4'])
  assert.match(story.stdout, /align#\d s=s4 was submitted by the main program/)
  const logs = await millrace(folder, ['logs', 's=s1'])
  assert.match(logs.stderr, /align#2 printed nothing/)
})

test('tasks of rules show their wildcards', async () => {
  const folder = makeFolder({
    'flow.ts': `
import { rule, sh, target } from 'millrace/flow'
rule('bam/{s}.bam', [], { name: 'align' }, ({ out, wildcards }) => sh\`test \${wildcards.s} != s4; echo > \${out}\`)
target('all', ['bam/s1.bam', 'bam/s4.bam'])
`,
  })
  const { stderr } = await millrace(folder, ['make', '-j', '1', '-k'])
  assert.match(stderr, /ok align#\d s=s1 /)
  assert.match(stderr, /failed align#\d s=s4 at /)
})

test('a label that is no function, or that throws, is refused with the name of the task', async () => {
  const folder = makeFolder({
    'app.mjs': `
import { main, task } from 'millrace'
export const one = task({ name: 'one', label: x => x.name.first }, x => x)
main(() => { one({}) })
`,
    'bad.mjs': `
import { main, task } from 'millrace'
export const one = task({ name: 'one', label: 'x' }, x => x)
main(() => {})
`,
  })
  const thrown = await millrace(folder, ['run', 'app.mjs'])
  assert.match(thrown.stderr, /task one: label threw: Cannot read.*/)
  const wrong = await millrace(folder, ['run', 'bad.mjs'])
  assert.match(wrong.stderr, /task one: label cannot be "x"/)
})
