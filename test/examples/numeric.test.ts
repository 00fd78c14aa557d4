import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { roundRobin } from '../../examples/linalg/round-robin.ts'
import { copyOf } from './examples.ts'
import { millrace } from '../cli/folder.ts'

async function result<T>(folder: string, program: string, env: Record<string, string>): Promise<T> {
  const { code, stdout, stderr } = await millrace(folder, ['run', program, '--progress', 'none'], env)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as T
}

test('kmeans: the centres are those of a plain loop, and checkpoints have what was computed', async () => {
  const folder = copyOf('kmeans')
  const small = {
    KMEANS_FRAGMENTS: '5',
    KMEANS_POINTS: '300',
    KMEANS_DIMENSIONS: '3',
    KMEANS_CENTRES: '4',
    KMEANS_OUT: 'c',
  }
  const { centres } = await result<{ centres: number[] }>(folder, 'kmeans.ts', small)
  const plain = await result<{ centres: number[] }>(folder, 'kmeans.ts', { ...small, KMEANS_SEQUENTIAL: '1' })
  assert.deepEqual(centres, plain.centres)
  const bytes = readFileSync(join(folder, 'c', 'centres-5'))
  assert.deepEqual([...new Float64Array(new Uint8Array(bytes).buffer)], centres)
  for (let i = 0; i < 5; i++) assert.ok(existsSync(join(folder, 'c', `fragment-${i}`)))
})

test('qr: Q R is the matrix, Q is orthogonal, blocks are those of a plain loop, and zeros take no memory', async () => {
  const folder = copyOf('qr')
  const small = { QR_BLOCKS: '4', QR_SIZE: '8' }
  interface Result {
    product: number
    orthogonal: number
    total: number
    inData: number
    blocks: number
  }
  const ours = await result<Result>(folder, 'qr.ts', small)
  const plain = await result<Result>(folder, 'qr.ts', { ...small, QR_SEQUENTIAL: '1' })
  assert.ok(ours.product < 1e-12 && ours.orthogonal < 1e-12, JSON.stringify(ours))
  assert.equal(ours.total, plain.total)
  assert.equal(ours.inData, plain.inData)
  assert.ok(ours.inData < ours.blocks)
})

test('warc: the words that tell pages apart are those of a plain loop', async () => {
  const folder = copyOf('warc')
  const small = { WARC_RECORDS: '120' }
  interface Result {
    records: number
    digest: string
  }
  const ours = await result<Result>(folder, 'warc.ts', small)
  const plain = await result<Result>(folder, 'warc.ts', { ...small, WARC_SEQUENTIAL: '1' })
  assert.equal(ours.records, 120)
  assert.equal(ours.digest, plain.digest)
})

test('linalg: blocks that tasks initialise on several nodes give the product and the factor of a plain loop', async () => {
  const folder = copyOf('linalg')
  const small = { SPREAD_N: '150', SPREAD_BLOCK: '32' }
  interface Result {
    product: number[]
    factor: number[]
  }
  const plain = await result<Result>(folder, 'spread.ts', { ...small, SPREAD_SEQUENTIAL: '1' })
  assert.equal(plain.product.length, 25)
  assert.equal(plain.factor.length, 15)
  for (const nodes of ['here', 'local:2x1']) {
    const ours = await result<Result>(folder, 'spread.ts', { ...small, MILLRACE_NODES: nodes })
    assert.deepEqual(ours.product, plain.product)
    assert.deepEqual(ours.factor, plain.factor)
  }
})

test('linalg: tasks that initialise blocks are spread over the nodes in turn, others go to what they read', () => {
  type Place = Parameters<NonNullable<typeof roundRobin.place>>[1]
  type Asked = Parameters<NonNullable<typeof roundRobin.place>>[0]
  const scores = (id: number, name: string, bytes: readonly number[]): number[] => {
    const all: Place[] = []
    bytes.forEach((own, node) => all.push({ node, bytes: own, all } as unknown as Place))
    return all.map(place => roundRobin.place?.({ id, kind: { name } } as Asked, place) ?? 0)
  }
  const turns = Array.from({ length: 9 }, (_, id) =>
    scores(id + 1, 'initialise', [0, 0, 0]).indexOf(Infinity),
  )
  assert.deepEqual(turns, [0, 1, 2, 0, 1, 2, 0, 1, 2])
  assert.deepEqual(scores(10, 'multiply', [0, 5, 3]), [0, 5, 3])
  assert.deepEqual(scores(11, 'initialise', [9, 9, 9]), [Infinity, 0, 0])
})

test('linalg: each node initialises as many blocks as each other, and no other number', async () => {
  const folder = copyOf('linalg')
  const env = { SPREAD_N: '192', SPREAD_BLOCK: '32', MILLRACE_NODES: 'local:3x1' }
  const { code, stdout, stderr } = await millrace(folder, ['run', 'spread.ts', '--json'], env)
  assert.equal(code, 0, stderr)
  const events = stdout
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as Record<string, unknown>)
  const kind = events.find(({ type, name }) => type === 'kind-defined' && name === 'initialise')?.['kind']
  const tasks = new Set(
    events.filter(({ type, kind: of }) => type === 'submitted' && of === kind).map(({ task }) => task),
  )
  const blocks = new Map<unknown, number>()
  for (const { type, task, node } of events) {
    if (type === 'started' && tasks.has(task)) blocks.set(node, (blocks.get(node) ?? 0) + 1)
  }
  assert.deepEqual([...blocks.values()], [48, 48, 48])
})
