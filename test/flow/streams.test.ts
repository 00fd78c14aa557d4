// Outputs of rules with the rules of streams. Steps prove that they run at the same time: the first waits for a
// file that the second makes only after it has read something.
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { toolsOrReason } from '../stream/support.ts'
import { make, read } from './flows.ts'

const { skip } = await toolsOrReason()

const FLOW = `
import { rule, sh, stream, target } from 'millrace/flow'
import { readFileSync, writeFileSync } from 'node:fs'
rule(stream('numbers/{n}.txt', { commit: 'on_close', fire: 'no_update' }), ['in/{n}.txt'], ({ out, in: [start] }) =>
  sh\`{ cat \${start}; while [ ! -e seen ]; do sleep 0.01; done; echo 2; } > \${out}\`)
rule('double/{n}.txt', ['numbers/{n}.txt'], ({ out, in: [from] }) =>
  sh\`{ dd bs=2 count=1 2> /dev/null; : > seen; sed 's/2/4/'; } < \${from} > \${out}\`)
rule('copy/{n}.txt', ['numbers/{n}.txt'], async ({ out, in: [from] }) => writeFileSync(out, readFileSync(from)))
target('all', ['double/7.txt', 'copy/7.txt'])
`

test('rules with streams run at the same time; then there is nothing to do', { skip }, async () => {
  const folder = makeFolder({ 'flow.ts': FLOW, 'in/7.txt': '7\n' })
  await make(folder, ['all'])
  assert.equal(read(folder, 'double/7.txt'), '7\n4\n')
  assert.equal(read(folder, 'numbers/7.txt'), '7\n2\n')
  assert.equal(read(folder, 'copy/7.txt'), '7\n2\n', 'a function reads the whole')
  assert.match((await make(folder, ['all'])).stderr, /nothing to do/)
  writeFileSync(join(folder, 'in/7.txt'), '8\n')
  rmSync(join(folder, 'seen'))
  await make(folder, ['all'])
  assert.equal(read(folder, 'double/7.txt'), '8\n4\n')
  assert.match((await make(folder, ['all'])).stderr, /nothing to do/)
})

test('a stream among the inputs of a rule is a mistake', async () => {
  const folder = makeFolder({
    'flow.ts': `import { rule, sh, stream } from 'millrace/flow'
rule('a', [stream('b')], ({ out }) => sh\`: > \${out}\`)`,
  })
  const ended = await millrace(folder, ['make', 'a'])
  assert.notEqual(ended.code, 0)
  assert.match(ended.stderr, /stream\('b'\) is an input of a, and rules are for outputs/)
})

const EARLY = `
import { dir, rule, sh, stream, target } from 'millrace/flow'
rule(stream('first.txt', { commit: 'on_close' }), ['in.txt'], ({ out, in: [from] }) =>
  sh\`cat \${from} > \${out}; while [ ! -e go ]; do sleep 0.01; done\`)
rule('second.txt', ['first.txt'], ({ out, in: [from] }) => sh\`cat \${from} > \${out}; : > go\`)
rule(stream(dir('parts'), { commit: 'on_n_files:2' }), ['in.txt'], ({ out }) =>
  sh\`echo 1 > \${out}/1; echo 2 > \${out}/2; while [ ! -e went ]; do sleep 0.01; done\`)
rule('listed.txt', ['parts'], ({ out, in: [from] }) => sh\`ls \${from} > \${out}; : > went\`)
target('file', ['second.txt'])
target('folder', ['listed.txt'])
`

test('what a rule has closed is read by other rules before it has ended', { skip }, async () => {
  const folder = makeFolder({ 'flow.ts': EARLY, 'in.txt': 'one\n' })
  await make(folder, ['file'])
  assert.equal(read(folder, 'second.txt'), 'one\n')
  assert.equal(read(folder, 'first.txt'), 'one\n')
  assert.match((await make(folder, ['file'])).stderr, /nothing to do/)
  writeFileSync(join(folder, 'in.txt'), 'two\n')
  rmSync(join(folder, 'go'))
  await make(folder, ['file'])
  assert.equal(read(folder, 'second.txt'), 'two\n', 'not what was there before')
  assert.match((await make(folder, ['file'])).stderr, /nothing to do/)
  await make(folder, ['folder'])
  assert.equal(read(folder, 'listed.txt'), '1\n2\n')
  assert.match((await make(folder, ['folder'])).stderr, /nothing to do/)
})
