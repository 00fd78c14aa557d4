/**
 * Finds where samples differ from a reference: reads are named, mapped, sorted, merged, marked, grouped and called,
 * and after each step a checkpoint of what there is is written, of five kinds. It does so twice: checkpoints as tasks
 * like any other, then as I/O tasks whose bandwidth is learned per kind. See README.md.
 */
import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { FILE_OUT, IN, barrier, main, task, waitOn } from 'millrace'
import { makeReference, makeSample } from './genome.ts'
import type { Future } from 'millrace'
import type { Variant } from './genome.ts'
import { addGroup, callVariants, mapReads, markDuplicates, merge, sortReads, toFastq } from './steps.ts'
import type { Read } from './steps.ts'

const { VARIANTS_SAMPLES = '24', VARIANTS_LENGTH = '20000', VARIANTS_DEPTH = '12' } = process.env
const { VARIANTS_CHECKPOINT = '4', VARIANTS_RATE = 'Infinity', VARIANTS_BANDWIDTH = 'auto' } = process.env
const { VARIANTS_FOLDER = '.', VARIANTS_OUT = '' } = process.env
const CHUNK = 2 ** 18

/** Megabytes that each kind of checkpoint writes, in the proportions of a real pipeline. */
const SIZES = { fastq: 162, mapped: 290, merged: 330, marked: 596, grouped: 615 }
type CheckpointKind = keyof typeof SIZES
const bytesOf = (kind: CheckpointKind): number =>
  Math.round(((Number(VARIANTS_CHECKPOINT) * SIZES[kind]) / SIZES.mapped) * 1e6)

export const fastq = task({ name: 'fastq' }, toFastq)
export const map = task({ name: 'map' }, mapReads)
export const sort = task({ name: 'sort' }, sortReads)
export const mergeReads = task({ name: 'merge' }, merge)
export const mark = task({ name: 'mark' }, markDuplicates)
export const groupReads = task({ name: 'group' }, addGroup)
export const call = task({ name: 'call' }, callVariants)

/** All that is known of the reads, as bytes. To make them is computing, and not for an I/O task. */
export const pack = task({ name: 'pack' }, (reads: readonly Read[]) =>
  new TextEncoder().encode(reads.map(read => Object.values(read).join('\t')).join('\n')),
)

const FILLER = Buffer.alloc(CHUNK, '#')

/** Writes the bytes, filled up to the size of the kind: on the disk when it ends. */
const save =
  (kind: CheckpointKind) =>
  async (bytes: Uint8Array, path: string): Promise<void> => {
    const size = Math.max(bytes.length, bytesOf(kind))
    const file = await open(path, 'w')
    const start = performance.now()
    try {
      for (let at = 0; at < size;) {
        const piece = at < bytes.length ? bytes.subarray(at, at + CHUNK) : FILLER.subarray(0, size - at)
        at += (await file.write(piece)).bytesWritten
        const early = at / 1e3 / Number(VARIANTS_RATE) - (performance.now() - start)
        if (early > 1) await new Promise(resolve => setTimeout(resolve, early))
      }
      await file.sync()
    } finally {
      await file.close()
    }
  }

const kinds = Object.keys(SIZES) as CheckpointKind[]
const checkpointTasks = (isIo: boolean) =>
  Object.fromEntries(
    kinds.map(kind => {
      const name = `checkpoint_${kind}${isIo ? '_io' : ''}`
      const io = isIo ? { io: true, size: bytesOf(kind), bandwidth: VARIANTS_BANDWIDTH } : {}
      return [kind, task({ name, params: [IN, FILE_OUT], ...io }, save(kind))] as const
    }),
  )
export const plainCheckpoints = checkpointTasks(false)
export const ioCheckpoints = checkpointTasks(true)

export const ioWarmUp = task(
  { name: 'warmUp', io: true },
  async () => new Promise(resolve => setTimeout(resolve, 1)),
)

async function run(folder: string, isIo: boolean): Promise<{ seconds: number; found: Variant[][] }> {
  await mkdir(folder)
  const reference = makeReference(Number(VARIANTS_LENGTH))
  const samples = Array.from({ length: Number(VARIANTS_SAMPLES) }, (_, i) =>
    makeSample(reference, i, Number(VARIANTS_DEPTH)),
  )
  const checkpoints = isIo ? ioCheckpoints : plainCheckpoints
  const keep = (kind: CheckpointKind, reads: Future<Read[]>, name: string): void =>
    void checkpoints[kind]?.(pack(reads), join(folder, name))
  const start = performance.now()
  const called = samples.map(({ name, reads }) => {
    const named = fastq(name, reads)
    keep('fastq', named, `${name}.fastq`)
    const mapped = map(named, reference)
    keep('mapped', mapped, `${name}.mapped`)
    const sorted = sort(mapped)
    keep('mapped', sorted, `${name}.sorted`)
    const merged = mergeReads(sorted, named)
    keep('merged', merged, `${name}.merged`)
    const marked = mark(merged)
    keep('marked', marked, `${name}.marked`)
    const grouped = groupReads(marked, name)
    keep('grouped', grouped, `${name}.grouped`)
    return call(grouped, reference)
  })
  const found = await waitOn(called)
  await barrier()
  const seconds = (performance.now() - start) / 1000
  const right = samples.filter(({ variants }, i) => JSON.stringify(variants) === JSON.stringify(found[i]))
  const checkpointsAs = isIo ? 'I/O tasks' : 'plain tasks'
  console.log(
    JSON.stringify({
      checkpoints: checkpointsAs,
      variants: found.flat().length,
      samplesFullyRight: right.length,
      seconds,
    }),
  )
  return { seconds, found }
}

main(async () => {
  const folder = await mkdtemp(join(VARIANTS_FOLDER, 'variants-'))
  try {
    // Threads take a moment to start, which is not what is shown here.
    await waitOn([0, 1, 2, 3].map(() => sort([])))
    await waitOn(ioWarmUp())
    const plain = await run(join(folder, 'plain'), false)
    const io = await run(join(folder, 'io'), true)
    console.log(`with I/O tasks it took ${Math.round((io.seconds / plain.seconds) * 100)}% of the time`)
    if (VARIANTS_OUT) {
      await mkdir(VARIANTS_OUT, { recursive: true })
      for (const [name, { found }] of Object.entries({ plain, io })) {
        await writeFile(join(VARIANTS_OUT, `${name}.json`), JSON.stringify(found))
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
