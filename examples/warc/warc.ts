/**
 * Term frequencies of a web archive, one task per record. The reader releases each record as it is read, so
 * the first records are counted while the rest is still on its way.
 *
 *     npx millrace run examples/warc/warc.ts
 *
 * WARC_RECORDS=1200   how many records the archive has
 * WARC_RATE=20        reads no faster than a device of that many MB/s
 * WARC_LAZY=1         the same without early release: all records come when the reader has ended
 */
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FILE_IN, IN, main, task, waitOn } from 'millrace'
import type { Future } from 'millrace'
import { readArchive, writeArchive } from './archive.ts'
import type { WebRecord } from './archive.ts'

const { WARC_RECORDS = '600', WARC_RATE = 'Infinity', WARC_LAZY = '' } = process.env
const RECORDS = Number(WARC_RECORDS)

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

/** The words of a page with the share of the text that each has, the most frequent first. */
export const frequencies = task({ name: 'frequencies' }, ({ uri, body }: WebRecord) => {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
  const counts = new Map<string, number>()
  let words = 0
  for (const [word] of text.matchAll(/[a-z]{3,}/g)) {
    counts.set(word, (counts.get(word) ?? 0) + 1)
    words++
  }
  const top = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 10)
  return { uri, words, top: top.map(([word, count]) => [word, count / words] as const) }
})

main(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'warc-'))
  const path = join(folder, 'pages.warc')
  try {
    await writeArchive(path, RECORDS)
    // Threads take a moment to start, which is not what is shown here.
    await waitOn([1, 2, 3].map(() => frequencies({ uri: 'warm-up', body: new Uint8Array(64) })))
    const { size } = await stat(path)
    const start = performance.now()
    const pages: Future<{ uri: string; words: number }>[] = []
    if (WARC_LAZY) for (const record of allRecords(path, Number(WARC_RATE))) pages.push(frequencies(record))
    else for await (const record of records(path, Number(WARC_RATE))) pages.push(frequencies(record))
    const done = await waitOn(pages)
    const seconds = (performance.now() - start) / 1000
    const words = done.reduce((sum, page) => sum + page.words, 0)
    console.log(JSON.stringify({ records: done.length, megabytes: size / 1e6, words, seconds }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
