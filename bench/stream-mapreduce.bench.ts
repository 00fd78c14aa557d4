import { bench } from './harness.ts'
import { workflowCases } from './stream/workflow-cases.ts'
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

await bench(
  'stream-mapreduce',
  workflowCases('mapreduce', about, work, { paper: '33 %', atMost: 0.67, rounds: 3 }),
)
