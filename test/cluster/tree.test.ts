import assert from 'node:assert/strict'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { TreeWriter, readTree, stampOf } from '../../src/cluster/files/tree.ts'
import { TreesIn } from '../../src/cluster/files/trees-in.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-tree-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function makeTree(name: string): string {
  const path = join(folder, name)
  mkdirSync(join(path, 'inner', 'empty'), { recursive: true })
  writeFileSync(join(path, 'nothing'), '')
  writeFileSync(join(path, 'inner', 'large'), Buffer.alloc(3_000_000, 'xyz'), { mode: 0o750 })
  symlinkSync('large', join(path, 'inner', 'link'))
  utimesSync(join(path, 'nothing'), 1000, 1000)
  return path
}

async function bytesOf(path: string): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of readTree(path)) pieces.push(piece)
  return Buffer.concat(pieces)
}

test('a folder comes out as it went in, wherever the stream is cut', async () => {
  const from = makeTree('from')
  const bytes = await bytesOf(from)
  for (const size of [7, 4096, 1_000_003, bytes.length]) {
    const to = join(folder, `to${size}`)
    // What was there before goes.
    mkdirSync(to)
    writeFileSync(join(to, 'old'), '')
    const writer = new TreeWriter(to, 1)
    // Small pieces only where records begin: the large file takes most of the stream.
    for (let at = 0; at < bytes.length;) {
      const step = at < 2000 || at > bytes.length - 2000 ? size : Math.max(size, 65_536)
      await writer.push(bytes.subarray(at, at + step))
      at += step
    }
    await writer.end()
    assert.deepEqual(
      readdirSync(to, { recursive: true }).sort(),
      readdirSync(from, { recursive: true }).sort(),
    )
    assert.equal(statSync(join(to, 'nothing')).mtimeMs, 1_000_000)
    assert.equal(statSync(join(to, 'inner', 'large')).mode & 0o777, 0o750)
    assert.equal(readlinkSync(join(to, 'inner', 'link')), 'large')
    assert.deepEqual(readFileSync(join(to, 'inner', 'large')), readFileSync(join(from, 'inner', 'large')))
  }
})

test('a file that changes while it is sent is found out, and nothing of it stays', async () => {
  const from = join(folder, 'changes')
  writeFileSync(from, Buffer.alloc(3_000_000))
  const to = join(folder, 'changed')
  const writer = new TreeWriter(to, 1)
  let count = 0
  await assert.rejects(async () => {
    for await (const piece of readTree(from)) {
      if (++count === 2) appendFileSync(from, 'more')
      await writer.push(piece)
    }
  }, /changes was changed while it was being sent/)
  await writer.abandon()
  assert.equal(existsSync(to), false)
  assert.deepEqual(
    readdirSync(folder).filter(name => name.endsWith('.part')),
    [],
  )
})

test('a stream that is cut off leaves nothing, and is told', async () => {
  const bytes = await bytesOf(makeTree('cut'))
  const trees = new TreesIn()
  const to = join(folder, 'half')
  trees.piece(5, bytes.subarray(0, 1_000_000), false)
  const arrived = trees.expect(5, to)
  const early = trees.expect(6, join(folder, 'short'))
  trees.piece(6, bytes.subarray(0, 1000), true)
  await assert.rejects(early, /cut off/)
  trees.cutOff(new Error('the node is gone'))
  await assert.rejects(arrived, /the node is gone/)
  await assert.rejects(trees.expect(7, to), /the node is gone/)
  assert.equal(existsSync(to), false)
})

test('a stamp tells contents apart', async () => {
  const path = makeTree('stamped')
  const before = await stampOf(path)
  assert.equal(await stampOf(path), before)
  appendFileSync(join(path, 'inner', 'large'), 'x')
  assert.notEqual(await stampOf(path), before)
  assert.equal(await stampOf(join(folder, 'missing')), null)
})
