import type { DeviceModel, NodeModel, Platform } from '../../src/simulate/machine/platform.ts'
import { UNSTATED } from './unstated.ts'

/**
 * One set of constants per platform, for all experiments on it. What the papers state is taken as stated; what
 * they leave out is given here with its reason.
 */

const MB = 1e6
const MiB = 2 ** 20
const GiB = 2 ** 30

const nodes = (count: number, model: Omit<NodeModel, 'name'>): Platform => ({
  nodes: Array.from({ length: count }, (_, i) => ({
    ...model,
    name: `n${i + 1}`,
    tags: [...model.tags, `n${i + 1}`],
  })),
})

/**
 * The papers do not say how long tasks compute, only what they write. Where it is missing, a round of tasks, one per
 * CPU, computes 0.8 times as long as it writes without I/O tasks: with less, a constraint of 4 would be better for HMMER
 * than the 8 of the thesis (4.5.3.1); with more, there would be less to hide. Inputs differ, so times vary by up to 0.3 of it.
 */
export const varying = (): number => UNSTATED.varying.value

/**
 * MareNostrum 4 (thesis 4.5.1): 48 cores, 370 GB, an SSD with 470 MB/s for reading and 450 MB/s for writing.
 * Not stated: how the SSD behaves under load. All writers call fsync. From the times in 4.5.3 and 4.5.4:
 * - HMMER with bounds (2,256,2) tries 14, 7, 3 and 1 writers more than without bounds, and takes 1099 - 932 s: 42 s each,
 *   for 290 MB. K-means tries 7, 3 and 1 more and takes 612 - 555 s: 19 s each, for 109 MB. So one writer gets 8 MB/s, and
 *   each file takes 5.3 s beside;
 * - with 56 writers all of the SSD is used, and that is what was learned for 290 MB (table 4.2). More are no better: each
 *   waits at its end for the others. 2 s at 56 writers, and with the cube of their number: so 64 give less than 1%
 *   more, and 112 give 7% less. How it goes on beyond these is a guess.
 */
const ssd = (): DeviceModel => ({
  name: 'ssd',
  path: '/scratch',
  read: 470 * MB,
  write: 450 * MB,
  // 200 GB in truth; the variants pipeline writes more per node and the thesis does not say how it was kept.
  capacity: null,
  stream: UNSTATED.writer.value * MB,
  knee: UNSTATED.knee.value,
  sync: UNSTATED.sync.value * 1000,
  latency: UNSTATED.latency.value * 1000,
})

export const mareNostrum4 = (count: number, ioExecutors = 225): Platform =>
  nodes(count, { cpus: 48, memory: 370e9, tags: [], ioExecutors, storage: [ssd()] })

/**
 * Without a constraint the I/O tasks of the thesis go to the first node that has an executor, as none needs a CPU: of
 * those that 12 nodes make at one time, as many as fill it. Ours are spread over the nodes.
 */
export const firstNode = (task: number, executors: number): string[] =>
  executors > 0 ? [`n${Math.floor((task % (12 * 48)) / executors) + 1}`] : []

/** Seconds in which `tasks` tasks write `megabytes` each to one SSD, side by side. */
export function writingTime(megabytes: number, tasks: number): number {
  const { writer, latency, sync, knee } = UNSTATED
  return megabytes / writer.value + latency.value + sync.value * (tasks / knee.value) ** 3
}

/** Seconds for which a task computes there before it writes `megabytes`. */
export const computingBefore = (megabytes: number): number =>
  UNSTATED.computing.value * writingTime(megabytes, 48)

/**
 * A node of CTE-Power (thesis 5.5.1): 40 cores, NVRAM 6026, SSD 2743 and PFS 900 MB/s for writing; NVRAM and SSD of
 * 1 TB. Its NVRAM is local, and each node has its own 1.8 to 2.4 TB to write. Not stated: reading, taken as fast as
 * writing; what one writer gets, taken as all that the others leave; memory, not used.
 */
export const ctePower = (layers = ['nvram', 'ssd', 'pfs']): Platform => {
  const layer = (name: string, bandwidth: number, capacity: number | null): DeviceModel => ({
    name,
    path: `/${name}`,
    read: bandwidth * UNSTATED.layerRead.value * MB,
    write: bandwidth * MB,
    stream: UNSTATED.layerWriter.value * MB,
    capacity,
    shared: true,
  })
  const all = [layer('nvram', 6026, 1e12), layer('ssd', 2743, 1e12), layer('pfs', 900, null)]
  const storage = all.filter(({ name }) => layers.includes(name))
  return nodes(1, { cpus: 40, memory: 512e9, tags: [], ioExecutors: 225, storage })
}

/**
 * InTrigger Tohoku (Pwrake, tables I and II): 8 cores, 32 GiB, Gigabit Ethernet; local disk 70 MiB/s for reading
 * and 59 for writing, cache 592 MiB/s. Remote reads of 39 MiB/s from disk and 71 from a cache say what one
 * stream gets through the network. Not stated:
 * - how much of the 32 GiB caches files. FIFO finds little there at 24 cores, where a node makes 6.7 GB with
 *   mProjectPP and 7.7 GB with mDiff, and nearly all at 48 cores, where it is half of that: 9 GiB. Programs and
 *   the server of Gfarm have the rest;
 * - its kernel takes what is written into the cache, as fast as it is read from there, and holds up writers when a
 *   tenth of the memory waits to be written;
 * - the disk has one arm, and eight streams get two thirds of what one gets.
 */
export const tohoku = (count: number, cpus = 8): Platform => {
  const disk: DeviceModel = {
    name: 'disk',
    path: '/gfarm',
    read: 70 * MiB,
    write: 59 * MiB,
    capacity: null,
    oneArm: true,
    knee: 1,
    falloff: UNSTATED.falloff.value,
    buffer: UNSTATED.buffer.value * GiB,
    stream: 592 * MiB,
  }
  const memory = { memory: 32 * GiB, cache: UNSTATED.cache.value * GiB, cacheRate: 592 * MiB }
  return nodes(count, { cpus, tags: [], ...memory, link: 71 * MiB, storage: [disk] })
}

/**
 * GALILEO100 (CAPIO V.A): 48 cores, 384 GB, 100 Gb/s. Streams stay in memory. How fast one process gets data is not
 * stated, but what was measured says something:
 * - 100 GB in 10,000 files come from five producers to one consumer in 75 s through CAPIO: it reads 1.33 GB/s. Producers
 *   are faster there (V.C), and write to their own memory: 2.4 GB/s, as one process writes to a tmpfs here;
 * - the same takes 630 s on Lustre. With many-to-1 slower than 1-to-many, and gains of 50 to 65% for 1-to-many, it reads
 *   about 0.6 and writes 1.2 GB/s. What is left of the 630 s is 39 ms for each file that is opened.
 */
export const galileo100 = (count: number): Platform => {
  const GB = 1e9
  const { lustreRead, lustreWrite, open, memoryRead, memoryWrite } = UNSTATED
  const lustre = {
    name: 'lustre',
    path: '/lustre',
    shared: true,
    read: 100 * GB,
    write: 100 * GB,
    capacity: null,
  }
  const memory = { name: 'memory', path: '/memory', read: 100 * GB, write: 100 * GB, capacity: null }
  const storage = [
    {
      ...lustre,
      stream: lustreRead.value * GB,
      streamWrite: lustreWrite.value * GB,
      latency: open.value * 1000,
    },
    { ...memory, stream: memoryRead.value * GB, streamWrite: memoryWrite.value * GB },
  ]
  return nodes(count, { cpus: 48, memory: 384 * GB, tags: [], link: 12.5 * GB, storage })
}
