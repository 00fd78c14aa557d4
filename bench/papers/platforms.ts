import type { DeviceModel, NodeModel, Platform } from '../../src/simulate/platform.ts'

/**
 * One set of constants per platform, for all experiments on it. What the papers state is taken as stated; what
 * they leave out is said here with its reason.
 */

const MB = 1e6
const MiB = 2 ** 20
const GiB = 2 ** 30

const nodes = (count: number, model: Omit<NodeModel, 'name'>): Platform => ({
  nodes: Array.from({ length: count }, (_, i) => ({ name: `n${i + 1}`, ...model })),
})

/**
 * MareNostrum 4 (thesis 4.5.1): 48 cores, 370 GB, an SSD with 470 MB/s for reading and 450 MB/s for writing.
 * Not stated: how the SSD behaves under load. The throughput is best at a constraint of 8, that is 56 writers,
 * and a little lower at 16, that is 28: so one writer, who calls fsync, reaches between 8 and 16 MB/s (we take
 * 14), and the knee is between 56 and 112 writers (we take 64). Beyond it the throughput falls in proportion.
 */
const ssd: DeviceModel = {
  name: 'ssd',
  path: '/scratch',
  read: 470 * MB,
  write: 450 * MB,
  // 200 GB in truth; the variants pipeline writes more per node and the thesis does not say how it was kept.
  capacity: null,
  stream: 14 * MB,
  knee: 64,
  falloff: 1,
}

export const mareNostrum4 = (count: number, ioExecutors = 225): Platform =>
  nodes(count, { cpus: 48, memory: 370e9, tags: [], ioExecutors, storage: [ssd] })

/**
 * CTE-Power (thesis 5.5.1): 40 cores, NVRAM 6026, SSD 2743 and PFS 900 MB/s for writing; NVRAM and SSD limited
 * to 1 TB, the PFS shared by all nodes. Not stated: reading, taken as fast as writing; memory, not used.
 */
export const ctePower = (count = 12): Platform => {
  const layer = (name: string, bandwidth: number, capacity: number | null, shared = false): DeviceModel => ({
    name,
    path: `/${name}`,
    read: bandwidth * MB,
    write: bandwidth * MB,
    capacity,
    shared,
  })
  const storage = [layer('nvram', 6026, 1e12), layer('ssd', 2743, 1e12), layer('pfs', 900, null, true)]
  return nodes(count, { cpus: 40, memory: 512e9, tags: [], ioExecutors: 225, storage })
}

/**
 * InTrigger Tohoku (Pwrake, tables I and II): 8 cores, 32 GiB, Gigabit Ethernet; local disk 70 MiB/s for reading
 * and 59 for writing, cache 592 MiB/s. Remote reads of 39 MiB/s from disk and 71 from a cache say what one
 * stream gets through the network. Not stated: how much of the 32 GiB caches files; we take 28.
 */
export const tohoku = (count: number, cpus = 8): Platform =>
  nodes(count, {
    cpus,
    memory: 32 * GiB,
    tags: [],
    cache: 28 * GiB,
    cacheRate: 592 * MiB,
    link: 71 * MiB,
    storage: [{ name: 'disk', path: '/gfarm', read: 70 * MiB, write: 59 * MiB, capacity: null }],
  })
