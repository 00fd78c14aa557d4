import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeFolder } from '../cli/folder.ts'
import { make } from './flows.ts'

/** Not so short that they queue on a CPU before it is known what is ready by then. */
const FLOW = `
import { rule, sh, target } from 'millrace/flow'
for (const i of [1, 2, 3, 4]) {
  rule(\`a\${i}\`, [], { name: 'a' }, ({ out }) => sh\`sleep 0.06; echo a >> ran; echo > \${out}\`)
  rule(\`b\${i}\`, \`a\${i}\`, { name: 'b' }, ({ out, in: a }) => sh\`sleep 0.06; echo b >> ran; cp \${a} \${out}\`)
}
target('all', ['b1', 'b2', 'b3', 'b4'])
`

test('make reads what was just made, unless another policy is asked for', async () => {
  const ran = (folder: string): string => readFileSync(`${folder}/ran`, 'utf8').replaceAll('\n', '')
  const usual = makeFolder({ 'flow.ts': FLOW })
  await make(usual, ['-j', '1'])
  // The last of the highest rank goes before what was just made, so that nothing trails behind.
  assert.equal(ran(usual), 'ababaabb')
  const asked = makeFolder({ 'flow.ts': FLOW })
  await make(asked, ['-j', '1', '--policy', 'fifo'])
  assert.equal(ran(asked), 'aaaabbbb')
})
