import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { jsonLines, makeFolder, millrace } from '../cli/folder.ts'

/** What the description of a machine says about bandwidth and CPUs, from the file to what runs. */

const PROGRAM = `
import { writeFile } from 'node:fs/promises'
import { task, main, waitOn, IN, FILE_IN, FILE_OUT } from 'millrace'
const nap = () => new Promise(resolve => setTimeout(resolve, 20))
let together = 0
const counted = async (): Promise<number> => {
  together++
  await nap()
  return together--
}
export const save = task({ io: true, params: [IN, FILE_OUT], bandwidth: 10, size: 10 },
  async (n: number, path: string) => { await writeFile(path, String(n)); return counted() })
export const load = task({ io: true, params: [FILE_IN], bandwidth: 10 }, async (_path: string) => counted())
export const wide = task({ io: true, params: [FILE_OUT], bandwidth: 50 }, async (path: string) => { await writeFile(path, '') })
main(async () => {
  const paths = Array.from({ length: 12 }, (_, i) => 'out' + i)
  const most = (counts: number[]) => Math.max(...counts)
  console.log('writing', most(await waitOn(paths.map((path, i) => save(i, path)))))
  console.log('reading', most(await waitOn(paths.map(path => load(path)))))
  try { await waitOn(wide('wide')) } catch (error) { console.log(error.message) }
})
`

const run = async (machine: string): Promise<string> => {
  const folder = makeFolder({ 'app.ts': PROGRAM, 'm.yaml': machine })
  for (const name of ['a', 'b']) mkdirSync(join(folder, name))
  const { code, stdout, stderr } = await millrace(folder, ['run', 'app.ts', '--machine', 'm.yaml'])
  assert.equal(code, 0, stderr)
  return stdout
}

test('a budget of a device holds for reads and for writes by themselves', async () => {
  const out = await run(`nodes:
  - ioExecutors: 12
    storage:
      - { name: a, path: a, readBandwidth: 40MB/s, writeBandwidth: 20MB/s }
`)
  assert.match(out, /^writing 2\nreading 4\n/)
  assert.match(out, /wide asks for 50 MB\/s of bandwidth, but the fastest storage, a, has 20 MB\/s/)
})

test('a budget of the node holds for all of its devices together, for reads and for writes', async () => {
  const out = await run(`nodes:
  - name: n1
    ioExecutors: 12
    readBandwidth: 50MB/s
    writeBandwidth: 30MB/s
    storage:
      - { name: a, path: a, bandwidth: 100MB/s, capacity: 60 }
      - { name: b, path: b, bandwidth: 100MB/s }
`)
  assert.match(out, /^writing 3\nreading 5\n/)
  assert.match(out, /wide asks for 50 MB\/s of bandwidth, but all storage of n1 together has 30 MB\/s/)
})

test('a shared file system has one budget for all nodes', async () => {
  const cost = `
import { task, main, FILE_OUT } from 'millrace'
export const save = task({ io: true, params: [FILE_OUT], bandwidth: 10, size: '100MB' }, async (_path: string) => {})
main(() => { for (let i = 0; i < 8; i++) save('out' + i) })
`
  const storage = '{ name: pfs, bandwidth: 20MB/s, streamBandwidth: 10MB/s }'
  const spans: number[] = []
  for (const machine of [
    `nodes: { name: n, count: 2, cpus: 2, storage: [${storage}] }`,
    `{ nodes: { name: n, count: 2, cpus: 2 }, storage: [${storage}] }`,
  ]) {
    const folder = makeFolder({ 'app.ts': cost, 'm.yaml': machine })
    const { code, stdout, stderr } = await millrace(folder, [
      'simulate',
      'app.ts',
      '--platform',
      'm.yaml',
      '--sweep',
      'bandwidth=10',
      '--json',
    ])
    assert.equal(code, 0, stderr)
    spans.push(Number(jsonLines(stdout)[0]?.['makespan']))
  }
  // Each takes 10 s: on two devices four run at a time, on one that is shared two.
  assert.deepEqual(spans, [20, 40])
})

const CPUS = availableParallelism()

test(
  'a command that is an I/O task is bound to the CPUs near its device',
  { skip: CPUS < 2 && 'one CPU' },
  async () => {
    const folder = makeFolder({
      'app.ts': `
import { readFile } from 'node:fs/promises'
import { command, main, waitOnFile, FILE_OUT } from 'millrace'
const allowed = (storage: string) => command({ name: 'on_' + storage, io: true, storage, params: [FILE_OUT] },
  path => ['sh', '-c', 'grep Cpus_allowed_list /proc/self/status > "$0"', path])
export const near = allowed('a')
export const anywhere = allowed('b')
main(async () => {
  near('near')
  anywhere('anywhere')
  for (const path of ['near', 'anywhere'])
    console.log(path, (await readFile(await waitOnFile(path), 'utf8')).split(':')[1]?.trim())
})
`,
      'm.yaml': `nodes:
  - storage:
      - { name: a, path: a, bandwidth: 100MB/s, cpus: 1 }
      - { name: b, path: b, bandwidth: 90MB/s }
`,
    })
    for (const name of ['a', 'b']) mkdirSync(join(folder, name))
    const { code, stdout, stderr } = await millrace(folder, ['run', 'app.ts', '--machine', 'm.yaml'])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^near 1$/m)
    assert.doesNotMatch(stdout, /^anywhere 1$/m)
  },
)
