import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseNodes } from '../src/cluster/launch/node-spec.ts'
import { streamRunOnNodes } from '../src/cluster/streams/stream-run.ts'
import { packageVersion } from '../src/runtime/version.ts'
import { bench, type Case } from './harness.ts'
import { BATCH_MEMORY, batchInMemory, NO_UPDATE, streamedAsItGrows } from './stream/arms.ts'
import { stepProgram, type Workflow } from './stream/workflow.ts'

const MIB = 2 ** 20
const TWO_NODES = 'millrace no_update, two nodes'

interface Shape {
  readonly files: number
  readonly size: number
  /** Microseconds of compute per file, in each step. */
  readonly compute: number
}

const wordsOf = ({ files, size, compute }: Shape, way: 'OUT' | 'IN'): string[] => [
  '-b',
  String(MIB),
  '-f',
  String(compute),
  way,
  `data#:0:${files}:1:${size}`,
]

const workflow = (shape: Shape): Workflow => ({
  stages: [
    [{ name: 'producer', args: wordsOf(shape, 'OUT'), outputs: ['data*'] }],
    [{ name: 'consumer', args: wordsOf(shape, 'IN'), inputs: ['data*'] }],
  ],
})

/** Seconds that steps took on two nodes of this machine: without starting the nodes, which all runs pay once. */
async function onTwoNodes(shape: Shape): Promise<number> {
  const place = mkdtempSync(join(tmpdir(), 'millrace-bench-nodes-'))
  try {
    const streaming = [{ name: 'data*', committed: 'on_close', mode: 'no_update' }]
    const graph = [
      { name: 'producer', output_stream: ['data*'], streaming },
      { name: 'consumer', input_stream: ['data*'], output_stream: ['times'] },
    ]
    const file = join(place, 'Config.json')
    writeFileSync(file, JSON.stringify({ name: 'bench', IO_Graph: graph, permanent: ['times'] }))
    const line = (way: 'OUT' | 'IN'): string =>
      [stepProgram(), ...wordsOf(shape, way)].map(word => `'${word}'`).join(' ')
    const steps = [
      { step: 'producer', nodes: ['local1'], run: `date +%s.%N > $MILLRACE_PLACE/begun; ${line('OUT')}` },
      { step: 'consumer', nodes: ['local2'], run: `${line('IN')} && date +%s.%N > times` },
    ]
    let told = ''
    const io = { out: () => undefined, err: (text: string) => void (told += text) }
    const options = { place, version: packageVersion() }
    const code = await streamRunOnNodes(
      file,
      steps,
      parseNodes('local:2', () => []),
      options,
      io,
    )
    if (code !== 0) throw new Error(told)
    const time = (name: string): number => Number(readFileSync(join(place, name), 'utf8'))
    return time('times') - time('begun')
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

function oneCase(name: string, about: string, shape: Shape, atMost: number): Case {
  return {
    name,
    about,
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 5,
    arms: [
      { system: TWO_NODES, run: () => onTwoNodes(shape) },
      streamedAsItGrows(workflow(shape)),
      batchInMemory(workflow(shape)),
    ],
    goals: [
      { of: TWO_NODES, against: BATCH_MEMORY, atMost },
      { of: NO_UPDATE, against: BATCH_MEMORY, atMost: 1 },
    ],
  }
}

const checked = 'one producer, one consumer, commit on close; every byte checked'

await bench('stream-nodes', [
  oneCase('1x1GiB', `1 x 1 GiB; ${checked}`, { files: 1, size: 1024 * MIB, compute: 0 }, 2.5),
  oneCase('100x10MiB', `100 x 10 MiB; ${checked}`, { files: 100, size: 10 * MIB, compute: 0 }, 2.5),
  oneCase(
    'compute',
    '100 x 10 MiB, 20 ms of compute per file in each step',
    { files: 100, size: 10 * MIB, compute: 20_000 },
    0.65,
  ),
])
