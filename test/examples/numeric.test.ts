import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
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
