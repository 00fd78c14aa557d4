/**
 * Searches protein families in a database that is split into parts, checkpoints the result of each part, and
 * gathers all hits. It does so twice: checkpoints as tasks like any other, then as I/O tasks. See README.md.
 */
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FILE_IN, FILE_OUT, IN, barrier, command, main, task, waitOn, waitOnFile } from 'millrace'
import { strangers, writeAlignment } from './families.ts'

const { HMMER_PARTS = '16', HMMER_SEQUENCES = '24000', HMMER_CHECKPOINT = '8' } = process.env
const { HMMER_RATE = 'Infinity', HMMER_FOLDER = tmpdir(), HMMER_OUT = '' } = process.env
const PARTS = Number(HMMER_PARTS)
const SEQUENCES = Number(HMMER_SEQUENCES)
const FAMILIES = 3
const CHUNK = 2 ** 18

export const align = task({ name: 'align', params: [FILE_OUT, IN] }, writeAlignment)
export const build = command({ name: 'hmmbuild', params: [FILE_OUT, FILE_IN] }, (model, alignment) =>
  words('hmmbuild --amino --cpu 0 -o /dev/null', model, alignment),
)
export const emit = command({ name: 'hmmemit', params: [FILE_OUT, FILE_IN] }, (sequences, model) =>
  words(`hmmemit -N ${Math.ceil(SEQUENCES / 100)} --seed 7 -o`, sequences, model),
)

export const split = task(
  { name: 'split', params: [FILE_IN, FILE_OUT, IN] },
  async (database: string, part: string, index: number) => {
    const sequences = (await readFile(database, 'utf8')).split(/^(?=>)/m)
    await writeFile(part, sequences.filter((_, i) => i % PARTS === index).join(''))
  },
)

/** With -Z, the significance of a hit is that in the whole database and not in its part. */
export const search = command(
  { name: 'hmmsearch', params: [FILE_OUT, FILE_IN, FILE_IN] },
  (hits, models, part) =>
    words(`hmmsearch --cpu 0 -Z ${SEQUENCES} -o /dev/null --tblout`, hits, models, part),
)

/** Paths may have spaces, so they are not part of the text. */
function words(text: string, ...paths: string[]): string[] {
  return [...text.split(' '), ...paths]
}

/** What was found so far and, as a long search would keep it, megabytes of state: on the disk when it ends. */
async function save(hits: string, path: string): Promise<void> {
  const state = Buffer.concat([await readFile(hits), Buffer.alloc(Number(HMMER_CHECKPOINT) * 1e6, '#')])
  const file = await open(path, 'w')
  const start = performance.now()
  try {
    for (let at = 0; at < state.length; at += CHUNK) {
      const { bytesWritten } = await file.write(state.subarray(at, at + CHUNK))
      const early = (at + bytesWritten) / 1e3 / Number(HMMER_RATE) - (performance.now() - start)
      if (early > 1) await new Promise(resolve => setTimeout(resolve, early))
    }
    await file.sync()
  } finally {
    await file.close()
  }
}
export const checkpoint = task({ name: 'checkpoint', params: [FILE_IN, FILE_OUT] }, save)
export const checkpointIo = task({ name: 'checkpointIo', io: true, params: [FILE_IN, FILE_OUT] }, save)

export const hitsOf = task({ name: 'hitsOf', params: [FILE_IN] }, async (path: string) =>
  (await readFile(path, 'utf8')).split('\n').filter(line => line !== '' && !line.startsWith('#')),
)

/** Sorted as one search would: by family, then by E-value and score. */
export const gather = task(
  { name: 'gather', params: [IN, FILE_OUT] },
  async (parts: readonly (readonly string[])[], path: string) => {
    const hits = parts.flat().map(line => {
      const [target, , family, , evalue, score] = line.split(/\s+/)
      return { target, family: String(family), evalue: Number(evalue), score: Number(score) }
    })
    hits.sort((a, b) => a.family.localeCompare(b.family) || a.evalue - b.evalue || b.score - a.score)
    await writeFile(path, hits.map(hit => Object.values(hit).join('\t')).join('\n') + '\n')
    return hits.length
  },
)

async function makeDatabase(folder: string): Promise<{ models: string; database: string }> {
  const [models, database] = [join(folder, 'all.hmm'), join(folder, 'db.fa')]
  const made: { model: string; sequences: string }[] = []
  for (let family = 0; family < FAMILIES; family++) {
    const [alignment, model, sequences] = ['sto', 'hmm', 'fa'].map(kind =>
      join(folder, `family${family}.${kind}`),
    ) as [string, string, string]
    align(alignment, family)
    build(model, alignment)
    emit(sequences, model)
    made.push({ model, sequences })
  }
  const text = async (path: string): Promise<string> => readFile(await waitOnFile(path), 'utf8')
  const members = await Promise.all(made.map(one => text(one.sequences)))
  const count = members.join('').split('>').length - 1
  await writeFile(models, (await Promise.all(made.map(one => text(one.model)))).join(''))
  await writeFile(database, members.join('') + strangers(SEQUENCES - count))
  return { models, database }
}

async function run(folder: string, models: string, database: string, isIo: boolean): Promise<number> {
  await mkdir(folder)
  const start = performance.now()
  const found = []
  for (let i = 0; i < PARTS; i++) {
    const [part, hits, saved] = ['fa', 'tbl', 'checkpoint'].map(kind => join(folder, `${i}.${kind}`)) as [
      string,
      string,
      string,
    ]
    split(database, part, i)
    search(hits, models, part)
    const keep = isIo ? checkpointIo : checkpoint
    keep(hits, saved)
    found.push(hitsOf(hits))
  }
  const count = await waitOn(gather(found, join(folder, 'hits.tsv')))
  await barrier()
  const seconds = (performance.now() - start) / 1000
  console.log(JSON.stringify({ checkpoints: isIo ? 'I/O tasks' : 'plain tasks', hits: count, seconds }))
  return seconds
}

main(async () => {
  const folder = await mkdtemp(join(HMMER_FOLDER, 'hmmer-'))
  try {
    const { models, database } = await makeDatabase(folder)
    // Threads take a moment to start, which is not what is shown here.
    await waitOn([0, 1, 2, 3].map(() => hitsOf(models)))
    const plain = await run(join(folder, 'plain'), models, database, false)
    const io = await run(join(folder, 'io'), models, database, true)
    console.log(`with I/O tasks it took ${Math.round((io / plain) * 100)}% of the time`)
    if (HMMER_OUT) await keepResults(folder, HMMER_OUT)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

async function keepResults(folder: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const [from, name] of [
    ['plain/hits.tsv', 'plain.tsv'],
    ['io/hits.tsv', 'io.tsv'],
    ['all.hmm', 'all.hmm'],
    ['db.fa', 'db.fa'],
  ] as const) {
    await writeFile(join(to, name), await readFile(await waitOnFile(join(folder, from))))
  }
}
