/**
 * TF-IDF of a web archive: which words tell a page from the others. The reader releases each record as it is read, so the
 * first records are counted while the rest is still on its way. Then the pages that have each word are summed up in a tree, and
 * each page is scored.
 *
 *     npx millrace run examples/warc/warc.ts
 *
 * WARC_RECORDS=1200   how many records the archive has
 * WARC_RATE=20        reads no faster than a device of that many MB/s
 * WARC_LAZY=1         the same without early release: all records come when the reader has ended
 * WARC_SEQUENTIAL=1   a plain loop instead, without tasks
 */
import { createHash } from 'node:crypto'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FILE_IN, IN, barrier, main, reduce, task, waitOn } from 'millrace'
import type { Future } from 'millrace'
import { readArchive, writeArchive } from './archive.ts'
import type { WebRecord } from './archive.ts'
import { addPages, count, score, wordsOf } from './terms.ts'
import type { Page, Scored } from './terms.ts'

const { WARC_RECORDS = '600', WARC_RATE = 'Infinity', WARC_LAZY = '', WARC_SEQUENTIAL = '' } = process.env
const RECORDS = Number(WARC_RECORDS)
const RATE = Number(WARC_RATE)
/** Pages of one task once all are counted: a task for each would take less time than to pass it its page. */
const BATCH = 50

/** An I/O task: it waits for its device, and holds no CPU. */
export const records = task(
  { name: 'records', io: true, params: [FILE_IN, IN] },
  async function* (path: string, rate: number) {
    yield* readArchive(path, rate)
  },
)
export const allRecords = task(
  { name: 'allRecords', io: true, params: [FILE_IN, IN], returns: RECORDS },
  async (path: string, rate: number): Promise<readonly WebRecord[]> => {
    const all: WebRecord[] = []
    for await (const record of readArchive(path, rate)) all.push(record)
    return all
  },
)
export const frequencies = task({ name: 'frequencies' }, count)
export const vocabulary = task({ name: 'vocabulary' }, wordsOf)
export const merge = task({ name: 'merge' }, addPages)
export const scores = task({ name: 'scores' }, score)

main(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'warc-'))
  const path = join(folder, 'pages.warc')
  try {
    await writeArchive(path, RECORDS)
    const { size } = await stat(path)
    const { scored, seconds, total } = WARC_SEQUENTIAL ? await inSequence(path) : await asTasks(path)
    const words = scored.reduce((sum, page) => sum + page.length, 0)
    const digest = createHash('sha256').update(JSON.stringify(scored)).digest('hex')
    const result = { records: scored.length, megabytes: size / 1e6, words, seconds, total }
    console.log(JSON.stringify({ ...result, first: scored[0], digest }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

interface Outcome {
  scored: Scored[]
  /** For reading and counting, and for all. */
  seconds: number
  total: number
}

async function asTasks(path: string): Promise<Outcome> {
  // Threads take a moment to start, which is not what is shown here.
  await waitOn([1, 2, 3].map(() => frequencies({ uri: 'warm-up', body: new Uint8Array(64) })))
  const start = performance.now()
  const pages: Future<Page>[] = []
  if (WARC_LAZY) for (const record of allRecords(path, RATE)) pages.push(frequencies(record))
  else for await (const record of records(path, RATE)) pages.push(frequencies(record))
  await barrier()
  const seconds = (performance.now() - start) / 1000
  const batches: Future<Page>[][] = []
  for (let i = 0; i < pages.length; i += BATCH) batches.push(pages.slice(i, i + BATCH))
  const all = reduce(
    merge,
    batches.map(batch => vocabulary(batch)),
  )
  const scored = await waitOn(batches.map(batch => scores(batch, all)))
  return { scored: scored.flat(), seconds, total: (performance.now() - start) / 1000 }
}

async function inSequence(path: string): Promise<Outcome> {
  const start = performance.now()
  const pages: Page[] = []
  for await (const record of readArchive(path, RATE)) pages.push(count(record))
  const seconds = (performance.now() - start) / 1000
  const scored = score(pages, wordsOf(pages))
  return { scored, seconds, total: (performance.now() - start) / 1000 }
}
