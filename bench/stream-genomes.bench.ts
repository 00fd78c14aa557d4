import { bench } from './harness.ts'
import { workflowCases } from './stream/workflow-cases.ts'
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

await bench(
  'stream-genomes',
  workflowCases('genomes', about, work, { paper: '39 %', atMost: 0.61, rounds: 2 }),
)
