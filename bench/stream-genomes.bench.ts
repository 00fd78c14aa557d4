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

const PEOPLE = 2504
const INSTANCES = 4
const PART = 16 * 2 ** 20
const SMALL = 4000

/** The five steps of 1000 Genomes for one chromosome; sizes are those of the paper with 16 instances. */
function workflow(): Workflow {
  const numbers = Array.from({ length: INSTANCES }, (_, i) => i)
  const merged = `merged/p#:0:${PEOPLE}:1:${SMALL * INSTANCES}`
  const last = (name: string): Workflow['stages'][0][0] => ({
    name,
    args: ['-f', '200', 'IN', merged, 'sifted:0:1:1:1000000', 'OUT', `@${name}.out:0:1:1:1000000`],
    inputs: ['merged/*', 'sifted'],
  })
  return {
    folders: ['merged', ...numbers.map(i => `ind${i}`)],
    prepare: ['OUT', `part#:0:${INSTANCES + 1}:1:${PART}`],
    stages: [
      [
        {
          name: 'individuals',
          args: ['-m', '20000'],
          instances: numbers.map(i => [
            'IN',
            `@part#:${i}:1:1:${PART}`,
            'OUT',
            `ind${i}/p#:0:${PEOPLE}:1:${SMALL}`,
          ]),
          outputs: numbers.map(i => `ind${i}/*`),
        },
        {
          name: 'sifting',
          args: ['-m', '20000', 'IN', `@part#:${INSTANCES}:1:1:${PART}`, 'OUT', 'sifted:0:1:1:1000000'],
          outputs: ['sifted'],
        },
      ],
      [
        {
          name: 'individuals_merge',
          args: ['-f', '50', 'IN', ...numbers.map(i => `ind${i}/p#:0:${PEOPLE}:1:${SMALL}`), 'OUT', merged],
          inputs: numbers.map(i => `ind${i}/*`),
          outputs: ['merged/*'],
        },
      ],
      [last('mutation_overlap'), last('frequency')],
    ],
  }
}

const work = workflow()
const about = `five steps, ${INSTANCES} directories of ${PEOPLE.toLocaleString('en')} files merged into one`
const common = { unit: 's', better: 'lower', take: 'median' } as const
const cases: Case[] = [
  {
    ...common,
    name: 'genomes',
    about,
    rounds: 5,
    arms: [streamedAsItGrows(work), batchInMemory(work), batchOnDisk(work)],
    goals: [{ of: NO_UPDATE, against: BATCH_MEMORY, atMost: 1 }],
  },
  {
    ...common,
    name: 'slow',
    about: `${about}; against slow storage (the paper: 39 % less time)`,
    rounds: 2,
    arms: [streamedFromSlowDisk(work), batchOnSlowDisk(work)],
    goals: [{ of: NO_UPDATE_SLOW, against: BATCH_SLOW, atMost: 0.61 }],
  },
]

await bench('stream-genomes', cases)
