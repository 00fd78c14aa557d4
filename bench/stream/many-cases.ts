import type { Goal } from '../goals.ts'
import type { Case } from '../harness.ts'
import {
  BATCH_MEMORY,
  BATCH_SLOW,
  batchInMemory,
  batchOnDisk,
  batchOnSlowDisk,
  NO_UPDATE,
  streamedAsItGrows,
  streamedWhole,
  UPDATE,
} from './arms.ts'
import type { Many } from './shapes.ts'
import type { Workflow } from './workflow.ts'

const MIB = 2 ** 20

const common = { unit: 's', better: 'lower', take: 'median' } as const
const fast = (work: Workflow): Case['arms'] => [
  streamedAsItGrows(work),
  streamedWhole(work),
  batchInMemory(work),
  batchOnDisk(work),
]
const slow = (work: Workflow): Case['arms'] => [streamedAsItGrows(work), batchOnSlowDisk(work)]
const inMemory = [UPDATE, NO_UPDATE].map(of => ({ of, against: BATCH_MEMORY, atMost: 1 }))
const gain = (share: number): Goal[] => [{ of: NO_UPDATE, against: BATCH_SLOW, atMost: share }]

/** Few large files, and 10,000 small ones, on memory, on this disk and on a slow one. */
export function manyCases(who: string, shape: (many: Many) => Workflow, several: number): Case[] {
  const large = shape({ files: 40, size: 10 * MIB, buffer: MIB, several })
  const small = shape({ files: 10_000, size: 16_384, buffer: MIB, several })
  return [
    { ...common, name: 'large', about: `40 x 10 MiB, ${who}`, rounds: 7, arms: fast(large), goals: inMemory },
    {
      ...common,
      name: 'small',
      about: `10,000 x 16 KiB, ${who}`,
      rounds: 7,
      arms: fast(small),
      goals: inMemory,
    },
    {
      ...common,
      name: 'slow-large',
      about: `40 x 10 MiB, ${who}, against slow storage (the paper: 66 % less time)`,
      rounds: 2,
      arms: slow(large),
      goals: gain(0.34),
    },
    {
      ...common,
      name: 'slow-small',
      about: `10,000 x 16 KiB, ${who}, against slow storage (the paper: 8 times as fast)`,
      rounds: 2,
      arms: slow(small),
      goals: gain(1 / 8),
    },
  ]
}

/** One sparse file of which each consumer reads a part, in memory and on a slow disk. */
export function partitionCases(work: Workflow, about: string): Case[] {
  return [
    { ...common, name: 'partitions', about, rounds: 7, arms: fast(work), goals: inMemory },
    {
      ...common,
      name: 'slow-partitions',
      about: `${about}, against slow storage (the paper: 50 to 65 % less time)`,
      rounds: 2,
      arms: slow(work),
      goals: gain(0.5),
    },
  ]
}
