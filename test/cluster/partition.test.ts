import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonLines, makeFolder, millrace } from '../cli/folder.ts'

/** Six chains of three: what a chain makes is read by its next task only. */
const FLOW = `
import { rule, sh, target } from 'millrace/flow'
rule('a{n}', [], { name: 'a' }, ({ out }) => sh\`echo \${out} > \${out}\`)
rule('b{n}', ['a{n}'], { name: 'b' }, ({ out, in: [from] }) => sh\`cat \${from} > \${out}\`)
rule('c{n}', ['b{n}'], { name: 'c' }, ({ out, in: [from] }) => sh\`cat \${from} > \${out}\`)
target('all', [1, 2, 3, 4, 5, 6].map(n => 'c' + n))
`

test(
  'make --partition divides a workflow among nodes: a chain stays together',
  { timeout: 120_000 },
  async () => {
    const folder = makeFolder({ 'flow.ts': FLOW })
    const { code, stderr } = await millrace(folder, [
      'make',
      '--nodes',
      'local:3',
      '--partition',
      'greedy',
      '-j',
      '1',
    ])
    assert.equal(code, 0, stderr)
    const { stdout } = await millrace(folder, ['show', '--json'])
    const labels = new Map<number, string>()
    const nodes = new Map<string, Set<number>>()
    for (const event of jsonLines(stdout) as Record<string, unknown>[]) {
      if (event['type'] === 'submitted') labels.set(event['task'] as number, event['label'] as string)
      if (event['type'] !== 'started') continue
      const label = labels.get(event['task'] as number) as string
      nodes.set(label, (nodes.get(label) ?? new Set()).add(event['node'] as number))
    }
    assert.equal(nodes.size, 6)
    // Two chains for each node, of which one waits: no node has so much to do that another takes it over.
    for (const [label, on] of nodes) assert.equal(on.size, 1, `${label} on ${[...on].join(' ')}`)
    assert.equal(new Set([...nodes.values()].flatMap(on => [...on])).size, 3)
  },
)

test('make --partition on one node says that it does nothing there', { timeout: 60_000 }, async () => {
  const folder = makeFolder({ 'flow.ts': FLOW })
  const { code, stderr } = await millrace(folder, ['make', '--partition'])
  assert.equal(code, 0, stderr)
  assert.match(stderr, /--partition divides a workflow among nodes/)
})
