import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOf, missing } from './examples.ts'
import { millrace } from '../cli/folder.ts'

test(
  'hmmer: parts find what one search of the whole database finds, with I/O tasks and without',
  { skip: missing('hmmbuild', 'hmmemit', 'hmmsearch') },
  async () => {
    const folder = copyOf('hmmer')
    const small = { HMMER_PARTS: '3', HMMER_SEQUENCES: '900', HMMER_CHECKPOINT: '0.1', HMMER_OUT: 'results' }
    const { code, stdout, stderr } = await millrace(folder, ['run', 'hmmer.ts'], small)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /"plain tasks"[^]*"I\/O tasks"/)
    const result = (name: string): string => join(folder, 'results', name)
    const tables = ['plain.tsv', 'io.tsv'].map(name =>
      readFileSync(result(name), 'utf8').trim().split('\n').sort(),
    )
    const argv = ['--cpu', '0', '-o', '/dev/null', '--tblout', result('whole.tbl')]
    const whole = spawnSync('hmmsearch', [...argv, result('all.hmm'), result('db.fa')])
    assert.equal(whole.status, 0, String(whole.stderr))
    const expected = readFileSync(result('whole.tbl'), 'utf8')
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('#'))
      .map(line => {
        const [target, , family, , evalue, score] = line.split(/\s+/)
        return [target, family, Number(evalue), Number(score)].join('\t')
      })
      .sort()
    assert(expected.length >= 27, 'the members of the families are found')
    for (const table of tables) assert.deepEqual(table, expected)
  },
)

test('variants: all places where samples differ are found, with I/O tasks and without', async () => {
  const folder = copyOf('variants')
  const small = {
    VARIANTS_SAMPLES: '3',
    VARIANTS_LENGTH: '4000',
    VARIANTS_CHECKPOINT: '0.1',
    VARIANTS_BANDWIDTH: '50',
    VARIANTS_OUT: 'results',
  }
  const { code, stdout, stderr } = await millrace(folder, ['run', 'variants.ts'], small)
  assert.equal(code, 0, stderr)
  assert.match(stdout, /"plain tasks".*"samplesFullyRight":3[^]*"I\/O tasks".*"samplesFullyRight":3/)
  const [plain, io] = ['plain', 'io'].map(name =>
    readFileSync(join(folder, 'results', `${name}.json`), 'utf8'),
  )
  assert.equal(plain, io)
})

test(
  'references: what fits to each reference is what BWA finds without tasks, byte for byte',
  { skip: missing('bwa') },
  async () => {
    const folder = copyOf('references')
    const small = { REFERENCES_SAMPLES: '3', REFERENCES_READS: '300', REFERENCES_LENGTH: '20000' }
    for (const [out, env] of [
      ['tasks', small],
      ['plain', { ...small, REFERENCES_SEQUENTIAL: '1' }],
    ] as const) {
      const { code, stderr } = await millrace(folder, ['run', 'references.ts', '--', out], env)
      assert.equal(code, 0, stderr)
    }
    for (let sample = 0; sample < 3; sample++) {
      const [relative, own] = [1, 2].map(reference => {
        const name = `s${sample}-ref${reference}.sam`
        const [ours, plain] = ['tasks', 'plain'].map(out => readFileSync(join(folder, out, name), 'utf8'))
        assert.equal(ours, plain, name)
        return (ours as string).length
      }) as [number, number]
      assert.ok(relative > 0 && relative < own / 2, `${relative} and ${own} bytes`)
    }
  },
)
