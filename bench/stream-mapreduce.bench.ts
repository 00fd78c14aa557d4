import { bench, type Case } from './harness.ts'
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
} from './stream/arms.ts'
import type { Workflow } from './stream/workflow.ts'

const MIB = 2 ** 20
const MAPPERS = 2

/** Split reads a large file and writes K parts; map-reduce turns them into M results; merge joins these. */
function workflow(mib: number, parts: number, results: number): Workflow {
  const [part, result] = [(mib * MIB) / parts, (mib * MIB) / 4 / results]
  const numbers = Array.from({ length: MAPPERS }, (_, i) => i)
  return {
    prepare: ['OUT', `input:0:1:1:${mib * MIB}`],
    stages: [
      [
        {
          name: 'split',
          args: ['-m', '4000', 'IN', `@input:0:1:1:${mib * MIB}`, 'OUT', `part#:0:${parts}:1:${part}`],
          outputs: ['part*'],
        },
      ],
      [
        {
          name: 'mapreduce',
          args: ['-m', '8000'],
          instances: numbers.map(i => [
            'IN',
            `part#:${i}:${parts / MAPPERS}:${MAPPERS}:${part}`,
            'OUT',
            `result#:${i}:${results / MAPPERS}:${MAPPERS}:${result}`,
          ]),
          inputs: ['part*'],
          outputs: ['result*'],
        },
      ],
      [
        {
          name: 'merge',
          args: [
            '-m',
            '16000',
            'IN',
            `result#:0:${results}:1:${result}`,
            'OUT',
            `@output:0:1:1:${(mib * MIB) / 4}`,
          ],
          inputs: ['result*'],
        },
      ],
    ],
  }
}

const work = workflow(192, 24, 24)
const about = '192 MiB in 24 parts, 2 map-reducers, 24 results, one output of 48 MiB; 3 s of compute'
const common = { unit: 's', better: 'lower', take: 'median' } as const
const cases: Case[] = [
  {
    ...common,
    name: 'mapreduce',
    about,
    rounds: 5,
    arms: [streamedAsItGrows(work), batchInMemory(work), batchOnDisk(work)],
    goals: [{ of: NO_UPDATE, against: BATCH_MEMORY, atMost: 1 }],
  },
  {
    ...common,
    name: 'slow',
    about: `${about}; against slow storage (the paper: 33 % less time)`,
    rounds: 3,
    arms: [streamedFromSlowDisk(work), batchOnSlowDisk(work)],
    goals: [{ of: NO_UPDATE_SLOW, against: BATCH_SLOW, atMost: 0.67 }],
  },
]

await bench('stream-mapreduce', cases)
