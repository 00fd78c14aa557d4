import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { make } from '../flow/flows.ts'
import { copyOf, missing } from './examples.ts'

test('copyfile: every copy is what it was copied from', async () => {
  const folder = copyOf('copyfile')
  await make(folder, ['--policy', 'lifo+hrf', '--', 'files=5', 'megabytes=1'])
  for (let i = 0; i < 5; i++) {
    const original = readFileSync(join(folder, 'work/in', String(i)))
    assert.equal(original.length, 2 ** 20)
    assert(original.equals(readFileSync(join(folder, 'work/b', String(i)))))
  }
})

test('montage: a mosaic with even background', { skip: missing('mProjectPP', 'mViewer') }, async () => {
  const folder = copyOf('montage')
  await make(folder, ['mosaic', '--policy', 'rank', '--', 'n=2', 'size=120'])
  const png = readFileSync(join(folder, 'mosaic.png'))
  assert.equal(png.subarray(1, 4).toString(), 'PNG')
  // Four tiles have six overlaps, of which the two across corners are small but there.
  assert.equal(readdirSync(join(folder, 'work/d')).filter(name => name.endsWith('.fit')).length, 6)
  assert(statSync(join(folder, 'work/mosaic.fits')).size > 100_000)
  const { stderr } = await make(folder, ['mosaic', '--', 'n=2', 'size=120'])
  assert.match(stderr, /nothing to do/)
})

test(
  'variants-flow: variants are found, and reads are gone',
  { skip: missing('bwa', 'samtools', 'wgsim', 'bcftools') },
  async () => {
    const folder = copyOf('variants-flow')
    await make(folder, ['--', 'samples=2', 'length=5000', 'reads=1000'])
    const lines = readFileSync(join(folder, 'variants.txt'), 'utf8').trim().split('\n')
    assert.equal(lines.length, 2)
    for (const line of lines) assert(Number(line.split(' ')[1]) > 0, line)
    assert(!existsSync(join(folder, 'work/s1.1.fq')))
  },
)
