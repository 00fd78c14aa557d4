import type { Case } from '../harness.ts'
import {
  BATCH_MEMORY,
  BATCH_SLOW,
  batchInMemory,
  batchOnDisk,
  batchOnSlowDisk,
  NO_UPDATE,
  NO_UPDATE_SLOW,
  streamedAsItGrows,
  streamedFromSlowDisk,
} from './arms.ts'
import type { Workflow } from './workflow.ts'

/** A workflow streamed against the same in batch: in memory and on this disk, and from slow storage. */
export function workflowCases(
  name: string,
  about: string,
  work: Workflow,
  slow: { paper: string; atMost: number; rounds: number },
): Case[] {
  const common = { unit: 's', better: 'lower', take: 'median' } as const
  return [
    {
      ...common,
      name,
      about,
      rounds: 5,
      arms: [streamedAsItGrows(work), batchInMemory(work), batchOnDisk(work)],
      goals: [{ of: NO_UPDATE, against: BATCH_MEMORY, atMost: 1 }],
    },
    {
      ...common,
      name: 'slow',
      about: `${about}; against slow storage (the paper: ${slow.paper} less time)`,
      rounds: slow.rounds,
      arms: [streamedFromSlowDisk(work), batchOnSlowDisk(work)],
      goals: [{ of: NO_UPDATE_SLOW, against: BATCH_SLOW, atMost: slow.atMost }],
    },
  ]
}
