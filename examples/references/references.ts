/**
 * Aligns the reads of samples to two references with BWA, and writes what fits to a file for each pair. How much fits depends on
 * the reference, so the two kinds of I/O tasks write different amounts: with a description of storage layers, `--io-policy
 * priority` and `backfill` give the larger ones the faster layer.
 *
 *     npx millrace run examples/references/references.ts -- OUT
 *
 * REFERENCES_SAMPLES=8   samples
 * REFERENCES_READS=4000  reads of each
 * REFERENCES_LENGTH=100000  bases of a reference
 * REFERENCES_SEQUENTIAL=1   a plain loop instead, without tasks
 */
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FILES_IN, FILE_IN, FILE_OUT, IN, command, main, task, waitOn } from 'millrace'
import { makeGenomes, makeReads, toFasta } from './genomes.ts'

const setting = (name: string, value: number): number => Number(process.env[`REFERENCES_${name}`] ?? value)
const SAMPLES = setting('SAMPLES', 8)
const READS = setting('READS', 4000)
const LENGTH = setting('LENGTH', 100_000)

/** What `bwa index` makes beside the reference. */
const INDEX = ['amb', 'ann', 'bwt', 'pac', 'sa']

/** BWA finds the index by the name of the reference, which is at its own path for all tasks. */
export const align1 = command(
  { name: 'align_ref1', params: [IN, FILES_IN, FILE_IN, FILE_OUT], stdout: 3 },
  (reference: string, _index: readonly string[], reads: string) => alignment(reference, reads),
)
export const align2 = command(
  { name: 'align_ref2', params: [IN, FILES_IN, FILE_IN, FILE_OUT], stdout: 3 },
  (reference: string, _index: readonly string[], reads: string) => alignment(reference, reads),
)

const writing = { io: true, params: [FILE_IN, FILE_OUT] } as const
export const write1 = task({ name: 'write_res1', bandwidth: '20MB/s', ...writing }, writeFitting)
export const write2 = task({ name: 'write_res2', bandwidth: '80MB/s', ...writing }, writeFitting)

const alignment = (reference: string, reads: string): string[] => ['bwa', 'mem', '-v', '1', reference, reads]

/** Reads that fit, without the header, which has the paths of this run; returns how many. */
async function writeFitting(sam: string, out: string): Promise<number> {
  const fitting = fittingOf(await readFile(sam, 'utf8'))
  await writeFile(out, fitting.join(''))
  return fitting.length
}

const fittingOf = (sam: string): string[] =>
  sam.split(/(?<=\n)/).filter(line => !line.startsWith('@') && (Number(line.split('\t')[1]) & 4) === 0)

function bwa(words: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync('bwa', words, { encoding: 'utf8', maxBuffer: 2 ** 30 })
  if (status !== 0) throw new Error(`bwa ${words[0]}: ${error?.message ?? stderr}`)
  return stdout
}

main(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'references-'))
  try {
    const genomes = makeGenomes(LENGTH)
    const references = ['relative', 'own'].map(name => join(folder, `${name}.fa`)) as [string, string]
    for (const [i, path] of references.entries()) {
      await writeFile(path, toFasta(`ref${i + 1}`, genomes.references[i] as string))
      bwa(['index', path])
    }
    const samples = Array.from({ length: SAMPLES }, (_, i) => join(folder, `s${i}.fq`))
    for (const [i, path] of samples.entries()) await writeFile(path, makeReads(genomes, i, READS))
    const out = process.argv[2] ?? join(folder, 'out')
    await mkdir(out, { recursive: true })
    const start = performance.now()
    const isPlain = process.env['REFERENCES_SEQUENTIAL'] === '1'
    const counts = isPlain
      ? await inSequence(samples, references, out)
      : await asTasks(samples, references, out)
    console.log(JSON.stringify({ counts, seconds: (performance.now() - start) / 1000 }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

const resultOf = (out: string, sample: number, reference: number): string =>
  join(out, `s${sample}-ref${reference + 1}.sam`)

/** The number of reads that fit, for each sample and reference. */
async function asTasks(samples: string[], references: [string, string], out: string): Promise<number[][]> {
  const steps = [
    { align: align1, write: write1 },
    { align: align2, write: write2 },
  ]
  const counts = samples.map((reads, sample) =>
    references.map((reference, i) => {
      const { align, write } = steps[i] as (typeof steps)[0]
      const index = INDEX.map(kind => `${reference}.${kind}`)
      const sam = `${reads}.${i}.sam`
      void align(reference, index, reads, sam)
      return write(sam, resultOf(out, sample, i))
    }),
  )
  return waitOn(counts)
}

async function inSequence(samples: string[], references: [string, string], out: string): Promise<number[][]> {
  const counts: number[][] = []
  for (const [sample, reads] of samples.entries()) {
    const row: number[] = []
    for (const [i, reference] of references.entries()) {
      const fitting = fittingOf(bwa(alignment(reference, reads).slice(1)))
      await writeFile(resultOf(out, sample, i), fitting.join(''))
      row.push(fitting.length)
    }
    counts.push(row)
  }
  return counts
}
