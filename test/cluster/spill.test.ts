import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { Incoming } from '../../src/cluster/transfer/incoming.ts'
import { folder, start, until } from './program.ts'

const MEBIBYTE = 2 ** 20

function filled(value: number, size = MEBIBYTE): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(size)
  new Uint8Array(buffer).fill(value)
  return buffer
}

interface Bed {
  incoming: Incoming
  at: string
  began: number
  failures: Error[]
}

let beds = 0
function bed(limit: number, at = join(folder, `spill-${++beds}`)): Bed {
  const one: Bed = { incoming: new Incoming(), at, began: 0, failures: [] }
  one.incoming.spillTo({
    folder: at,
    limit,
    began: () => one.began++,
    failed: error => one.failures.push(error),
  })
  return one
}

const inMemory = ({ incoming }: Bed, count: number): number[] =>
  Array.from({ length: count }, (_, i) => i).filter(number => incoming.get(number) !== undefined)

const here = (incoming: Incoming, numbers: readonly number[]): Promise<number[]> =>
  new Promise(resolve =>
    incoming.whenHere(numbers, buffers =>
      resolve(buffers.map(buffer => (new Uint8Array(buffer).at(-1) ?? 0) + buffer.byteLength - MEBIBYTE)),
    ),
  )

test('what was used least lately goes to the disk and comes back when it is wanted', async () => {
  const one = bed(3 * MEBIBYTE)
  for (let i = 0; i < 8; i++) one.incoming.put(i, filled(i))
  await until(() => inMemory(one, 8).length === 3)
  assert.deepEqual(inMemory(one, 8), [5, 6, 7])
  assert.deepEqual(readdirSync(one.at).sort(), ['0', '1', '2', '3', '4'])
  assert.equal(one.began, 1)
  // More than fit at one time.
  assert.deepEqual(await here(one.incoming, [6, 0, 1, 2, 3, 4]), [6, 0, 1, 2, 3, 4])
  await until(() => inMemory(one, 8).length === 3)
  for (let i = 0; i < 8; i++) assert.deepEqual(await here(one.incoming, [i]), [i])
  for (let i = 0; i < 8; i++) one.incoming.forget(i)
  await until(() => readdirSync(one.at).length === 0)
})

test('what is there already when the limit is set counts', async () => {
  const incoming = new Incoming()
  const at = join(folder, `spill-${++beds}`)
  for (let i = 0; i < 3; i++) incoming.put(i, filled(i))
  incoming.spillTo({ folder: at, limit: MEBIBYTE, began: () => undefined, failed: assert.fail })
  await until(() => existsSync(at) && readdirSync(at).length === 2)
  assert.deepEqual(await here(incoming, [0, 1, 2]), [0, 1, 2])
})

test('another node gets one that is on the disk', async () => {
  const one = bed(MEBIBYTE)
  for (let i = 0; i < 3; i++) one.incoming.put(i, filled(i + 7))
  await until(() => inMemory(one, 3).length === 1)
  let bytes = 0
  for await (const [, piece] of one.incoming.blocksOf(0, 99)) {
    bytes += piece?.length ?? 0
    assert.equal(piece?.[0], 7)
  }
  assert.equal(bytes, MEBIBYTE)
})

test('what is small or changed in place stays', async () => {
  const one = bed(MEBIBYTE)
  one.incoming.put(0, filled(1))
  one.incoming.pin(0)
  one.incoming.put(1, filled(2, 1000))
  for (let i = 2; i < 5; i++) one.incoming.put(i, filled(i))
  await until(() => inMemory(one, 5).length === 2)
  assert.deepEqual(inMemory(one, 5), [0, 1])
})

test('on a disk that cannot be written all stays in memory', async () => {
  const at = join(folder, 'no-folder')
  writeFileSync(at, '')
  const one = bed(MEBIBYTE, at)
  for (let i = 0; i < 5; i++) one.incoming.put(i, filled(i))
  for (let i = 0; i < 5; i++) assert.deepEqual(await here(one.incoming, [i]), [i])
  assert.equal(one.began, 0)
})

test('one that cannot be read again is told', async () => {
  const one = bed(MEBIBYTE)
  for (let i = 0; i < 3; i++) one.incoming.put(i, filled(i))
  await until(() => inMemory(one, 3).length === 1)
  truncateSync(join(one.at, '0'), 1000)
  one.incoming.whenHere([0], () => assert.fail('it is not there'))
  await until(() => one.failures.length === 1)
})

const root = join(import.meta.dirname, '..', '..')
const program = join(folder, 'spill.mjs')
writeFileSync(
  program,
  `
import { existsSync, readdirSync, statSync } from 'node:fs'
import { task, main, waitOn, barrier } from ${JSON.stringify(pathToFileURL(join(root, 'dist', 'index.js')).href)}
const [count, nodes] = process.argv.slice(2)
export const make = task({ name: 'make' }, value => new Float64Array(500_000).fill(value))
export const add = task({ name: 'add' }, (a, b) => a.map((one, i) => one + b[i]))
export const sum = task({ name: 'sum' }, a => a.reduce((x, y) => x + y, 0))
const spilled = path => existsSync(path) ? readdirSync(path, { recursive: true }).filter(name => /spilled\\/\\d+$/.test(name)).length : 0
main(async () => {
  const first = Array.from({ length: Number(count) }, (_, i) => make(i))
  await barrier()
  const second = first.map((one, i) => add(one, first[(i * 7 + 3) % first.length]))
  await barrier()
  const files = spilled(nodes)
  const sums = await waitOn([...first, ...second].map(one => sum(one)))
  console.log(JSON.stringify({ files, sums: sums.map(one => one / 500_000) }))
})
`,
)

const skip = process.platform === 'linux' ? false : 'agents of this machine reach each other on Linux only'

test('tasks whose values take more than the memory of their nodes', { skip, timeout: 120_000 }, async () => {
  const nodes = join(folder, 'spill-nodes')
  mkdirSync(nodes)
  chmodSync(nodes, 0o700)
  const words = [process.execPath, join(root, 'bin', 'millrace.js'), 'run', program, '--nodes', 'local:2x1']
  const all = [...words, '--no-journal', '--progress', 'plain', '--', '24', nodes]
  const variables = {
    MILLRACE_NODE_FOLDER: nodes,
    MILLRACE_NODE_MEMORY: '20MB',
    XDG_CACHE_HOME: join(folder, 'cache'),
  }
  const { code, text, said } = await start(all, variables).ended
  assert.equal(code, 0, said)
  assert.match(said + text, /takes more than 20 MB of memory: the rest is in/)
  const line = text.split('\n').find(one => one.startsWith('{')) ?? ''
  const { files, sums } = JSON.parse(line) as { files: number; sums: number[] }
  assert.ok(files >= 30, `${files}`)
  const first = Array.from({ length: 24 }, (_, i) => i)
  assert.deepEqual(sums, [...first, ...first.map(i => i + ((i * 7 + 3) % 24))])
  await until(() => !existsSync(nodes) || readdirSync(nodes).length === 0)
})
