/**
 * Aligns the reads of a FASTQ file that is larger than the memory it may use. Streamed, batches are aligned
 * as they are read, and no more of them are under way than there is memory for. Out of core, the file is
 * read part by part, each as large as the memory, and a part is read when the one before it is done.
 *
 *     npx millrace run examples/reads/reads.ts
 *
 * READS_MB=16           size of the file
 * READS_MEMORY=2        memory for reads, in MB
 * READS_OUT_OF_CORE=1   part by part
 */
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FILE_IN, IN, main, task, waitOn } from 'millrace'
import type { Future } from 'millrace'
import { Index, alignBatch } from './align.ts'
import { batches, makeReference, writeReads } from './fastq.ts'

const { READS_MB = '16', READS_MEMORY = '2', READS_OUT_OF_CORE = '' } = process.env
const MEMORY = Number(READS_MEMORY) * 1e6
const BATCH = 256 * 1024
const REFERENCE = makeReference(50_000)
let index: Index | null = null

export const reads = task(
  { name: 'reads', io: true, params: [FILE_IN], bufferBytes: MEMORY },
  async function* (path: string) {
    yield* batches(path, BATCH)
  },
)

/** One part of the file. It is a text without an index, so what is before the part is read too. */
export const part = task(
  { name: 'part', io: true, params: [FILE_IN, IN] },
  async (path: string, number: number): Promise<Uint8Array[]> => {
    const all: Uint8Array[] = []
    for await (const batch of batches(path, BATCH, number * MEMORY, (number + 1) * MEMORY)) all.push(batch)
    return all
  },
)

export const align = task({ name: 'align' }, (batch: Uint8Array) =>
  alignBatch(batch, (index ??= new Index(REFERENCE))),
)
export const alignOne = task({ name: 'alignOne' }, (all: Uint8Array[], which: number) =>
  alignBatch(all[which] as Uint8Array, (index ??= new Index(REFERENCE))),
)
export const sizeOf = task({ name: 'sizeOf' }, (all: Uint8Array[]) => all.length)

type Aligned = Future<{ reads: number; total: number }>

async function streamed(path: string): Promise<Aligned[]> {
  const aligned: Aligned[] = []
  for await (const batch of reads(path)) aligned.push(align(batch))
  return aligned
}

async function outOfCore(path: string, bytes: number): Promise<Aligned[]> {
  const aligned: Aligned[] = []
  for (let number = 0; number * MEMORY < bytes; number++) {
    const batchesOfPart = part(path, number)
    const count = await waitOn(sizeOf(batchesOfPart))
    const own: Aligned[] = []
    for (let which = 0; which < count; which++) own.push(alignOne(batchesOfPart, which))
    // The next part takes the place of this one.
    await waitOn([...own])
    aligned.push(...own)
  }
  return aligned
}

main(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reads-'))
  const path = join(folder, 'reads.fq')
  try {
    await writeReads(path, REFERENCE, Number(READS_MB) * 1e6)
    const { size } = await stat(path)
    await waitOn([1, 2, 3].map(() => align(new Uint8Array(0))))
    let peak = 0
    const before = process.memoryUsage().rss
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss - before)), 20)
    const start = performance.now()
    const done = await waitOn(await (READS_OUT_OF_CORE ? outOfCore(path, size) : streamed(path)))
    const seconds = (performance.now() - start) / 1000
    clearInterval(watch)
    const count = done.reduce((sum, one) => sum + one.reads, 0)
    const total = done.reduce((sum, one) => sum + one.total, 0)
    console.log(JSON.stringify({ megabytes: size / 1e6, reads: count, total, seconds, peakMB: peak / 1e6 }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
