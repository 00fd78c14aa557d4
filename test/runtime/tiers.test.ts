import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { configure, group, removeFile, shared, waitOn, waitOnFile } from 'millrace'
import * as io from '../fixtures/io-tasks.ts'
import { temporaryFolder, until } from './embedded.ts'

/** The fast layer is memory, the slow one the disk that tests write to: two devices on every machine. */
const disk = temporaryFolder()
const fast = mkdtempSync('/dev/shm/millrace-test-tiers-')
after(() => rmSync(fast, { recursive: true, force: true }))
const other = mkdtempSync('/dev/shm/millrace-test-results-')
after(() => rmSync(other, { recursive: true, force: true }))
mkdirSync(join(disk, 'layer'))

const skip = statSync(fast).dev === statSync(disk).dev ? '/dev/shm is on the same device as the disk' : false

writeFileSync(
  join(disk, 'machine.yaml'),
  `nodes:
  - storage:
      - { name: memory, path: ${fast}, bandwidth: 1000MB/s, capacity: 4kB }
      - { name: disk, path: layer, bandwidth: 100MB/s }
`,
)
configure({ machine: join(disk, 'machine.yaml'), flush: 'off' })

const newPath = (): string => join(mkdtempSync(join(disk, 'd')), 'file.txt')
const contents = async (path: string): Promise<string> => readFileSync(await waitOnFile(path), 'utf8')

test('a layer that is full is left out, and used again when there is room', { skip }, async () => {
  const paths = Array.from({ length: 6 }, newPath)
  const where = await waitOn(paths.map((path, i) => io.tell(String(i).repeat(1000), path)))
  assert.equal(where.filter(one => one.startsWith(fast)).length, 4)
  assert.equal(where.filter(one => one.startsWith(join(disk, 'layer'))).length, 2)
  for (const [i, path] of paths.entries()) assert.equal(await contents(path), String(i).repeat(1000))
  for (const path of paths) await removeFile(path)
  await until(() => kept().length === 0, 'there is room')
  const again = newPath()
  assert.ok((await io.tell('again', again)).startsWith(fast))
  await removeFile(again)
})

test(
  'a new file goes to the fastest layer, is read there, and comes to its path when it is asked for',
  { skip },
  async () => {
    const path = newPath()
    const where = await io.tell('hello', path)
    assert.ok(where.startsWith(fast), where)
    assert.equal(where.split('/').at(-1), 'file.txt')
    assert.equal(existsSync(path), false)
    const read = await waitOn(io.whereIs(path))
    assert.ok(read.path.startsWith(fast), read.path)
    assert.equal(read.text, 'hello')
    assert.equal(await contents(path), 'hello')
    await removeFile(path)
    assert.equal(existsSync(path), false)
  },
)

test('directories go there too', { skip }, async () => {
  const path = join(newPath(), 'folder')
  assert.ok((await io.makeFolder(path, 'x')).startsWith(fast))
  assert.equal(readFileSync(join(await waitOnFile(path), 'inside'), 'utf8'), 'x')
  await removeFile(path)
})

test('a task may name the device that it wants', { skip }, async () => {
  const path = newPath()
  assert.ok((await io.tellOnDisk('x', path)).startsWith(join(disk, 'layer')))
  // The same file system as its place, so that a rename was enough.
  assert.equal(readFileSync(path, 'utf8'), 'x')
})

test('a compute task that says how much it writes gets a layer as well', { skip }, async () => {
  const path = newPath()
  assert.ok((await io.computes('x', path)).startsWith(fast))
  assert.equal(await contents(path), 'x')
  await removeFile(path)
})

test('a file that is changed is a new version, wherever it lies', { skip }, async () => {
  const path = newPath()
  io.tell('one', path)
  const before = io.whereIs(path)
  io.append(path, ' two')
  assert.equal((await waitOn(before)).text, 'one')
  assert.equal(await contents(path), 'one two')
  await removeFile(path)
})

test('a reader keeps its copy while the file comes to its place and is removed', { skip }, async () => {
  const path = newPath()
  const gate = shared(Int32Array, 2)
  io.tell('hello', path)
  const reader = io.readLater(path, gate)
  await until(() => Atomics.load(gate, 0) === 1, 'it reads')
  assert.equal(await contents(path), 'hello')
  const removed = removeFile(path)
  Atomics.store(gate, 1, 1)
  assert.equal(await reader, 'hello')
  await removed
  await until(() => kept().length === 0, 'the copy is deleted')
})

test('a temporary file never comes to its path unless it is asked for', { skip }, async () => {
  const path = newPath()
  await group('g', () => {
    io.tellTemporary('x', path)
    io.whereIs(path)
    void removeFile(path)
  })
  await until(() => kept().length === 0, 'it is deleted after its last reader')
  assert.equal(existsSync(path), false)
  const wanted = newPath()
  io.tellTemporary('y', wanted)
  assert.equal(await contents(wanted), 'y')
  await removeFile(wanted)
})

test('a file whose place is on the layer itself is renamed into it', { skip }, async () => {
  const path = join(fast, 'own', 'result.txt')
  assert.ok((await io.tell('x', path)).startsWith(fast))
  assert.equal(readFileSync(path, 'utf8'), 'x')
})

/** Committed files on the fast layer. */
function kept(): string[] {
  return readdirSync(fast, { recursive: true })
    .map(String)
    .filter(name => name.includes('kept') && name.endsWith('.txt'))
}
