import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeFolder, millrace } from './folder.ts'

const PROGRAM = `
import { task, main, waitOn } from 'millrace'
export const one = task({ tags: ['fast'] }, () => 1)
main(async () => console.log(await waitOn(one())))
`

test('the description of a machine says what it has', async () => {
  const folder = makeFolder({
    'app.ts': PROGRAM,
    'machine.yaml': 'nodes:\n  - { name: big, cpus: 2, memory: 4GB, tags: [fast] }\n',
  })
  const given = await millrace(folder, ['run', 'app.ts', '--machine', 'machine.yaml', '--json'])
  assert.equal(given.code, 0, given.stderr)
  const [started] = given.stdout.split('\n').map(line => (line ? JSON.parse(line) : {}))
  assert.deepEqual(started.nodes, [{ name: 'big', cpus: 2, memory: 4e9 }])
  const byEnvironment = await millrace(folder, ['run', 'app.ts'], { MILLRACE_MACHINE: 'machine.yaml' })
  assert.equal(byEnvironment.stdout, '1\n', byEnvironment.stderr)
})

test('a description of several nodes needs to know which one this is', async () => {
  const folder = makeFolder({ 'app.ts': PROGRAM, 'machine.yaml': 'nodes: { name: n, count: 3, tags: fast }' })
  const args = ['run', 'app.ts', '--machine', 'machine.yaml']
  const unknown = await millrace(folder, args)
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /describes 3 nodes[^]*MILLRACE_NODE/)
  assert.equal((await millrace(folder, args, { MILLRACE_NODE: 'n2' })).stdout, '1\n')
})

test('a mistake in the description is usage, and is shown in its place before the program starts', async () => {
  const folder = makeFolder({ 'app.ts': 'console.log("began")', 'm.yaml': 'nodes:\n  - { cpu: 2 }\n' })
  const { code, stdout, stderr } = await millrace(folder, ['run', 'app.ts', '--machine', 'm.yaml'])
  assert.equal(code, 2)
  assert.equal(stdout, '')
  assert.match(stderr, /m\.yaml:2:7: nodes\[0\] has no key 'cpu'; did you mean 'cpus'\?/)
})
