import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bench, type Case } from './harness.ts'
import { Namespaces } from './stream/namespaces.ts'
import { batchOver, inFolder, seconds, streamedOver, transfer, withNodes } from './stream/over-nodes.ts'
import type { Spread } from './stream/over-nodes.ts'
import { genomes, manyToOne, mapReduce } from './stream/spreads.ts'
import { stepProgram } from './stream/workflow.ts'

const MIB = 2 ** 20
const STREAMED = 'millrace'
const WIRE = 'the bytes over TCP, nothing else'
const BATCH = 'batch through a folder of the same rate'
const FAR = 'batch through a folder with 2 ms per open and close'
const ONE = 'millrace, 1 to 1'
const SMALL = 'millrace, an eighth of the bytes'

interface Shape {
  readonly files: number
  readonly size: number
  /** Microseconds of compute per file, in each step. */
  readonly compute: number
  readonly readers?: number
}

const missing = Namespaces.missing

const wordsOf = ({ files, size, compute }: Shape, way: 'OUT' | 'IN'): string[] => [
  '-b',
  String(MIB),
  '-f',
  String(compute),
  way,
  `data#:0:${files}:1:${size}`,
]

/** One step that writes, and one on each of the other nodes that reads all. */
const spreadOf = (shape: Shape): Spread => {
  const outputs = ['data*']
  const readers = Array.from({ length: shape.readers ?? 1 }, (_, i) => i + 2)
  const read = (node: number) => ({
    name: `reader${node}`,
    node,
    args: wordsOf(shape, 'IN'),
    inputs: outputs,
  })
  return {
    nodes: readers.length + 1,
    stages: [[{ name: 'writer', node: 1, args: wordsOf(shape, 'OUT'), outputs }], readers.map(read)],
  }
}

const streamed = (shape: Shape): Promise<number> => streamedOver(spreadOf(shape))

const bytesOf = ({ files, size }: Shape): number => files * size

const onTheWire = (shape: Shape): Promise<number> =>
  withNodes(2, nodes => seconds(() => transfer(nodes, 1, 2, bytesOf(shape))))

/** The writer makes its files, they go into the shared folder, from there to the reader's node, and the reader reads them. */
const batch = (shape: Shape): Promise<number> =>
  withNodes(3, nodes =>
    inFolder('/dev/shm', folder =>
      seconds(async () => {
        mkdirSync(join(folder, 'files'))
        const step = (way: 'OUT' | 'IN', node: number): Promise<void> =>
          nodes.run(node, stepProgram(), wordsOf(shape, way), join(folder, 'files'))
        await step('OUT', 1)
        await transfer(nodes, 1, 3, bytesOf(shape))
        await transfer(nodes, 3, 2, bytesOf(shape))
        await step('IN', 2)
      }),
    ),
  )

const arm = (system: string, run: () => Promise<number>): Case['arms'][number] => ({ system, missing, run })

/** Empty when it is not there any more. */
function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** The largest memory that the processes of a node had for themselves together, without the steps, in MiB. */
async function memoryOf(shape: Shape): Promise<number> {
  let most = 0
  await streamedOver(spreadOf(shape), nodes => {
    for (const node of [1, 2]) {
      const sizes = nodes.pids(node).map(pid => {
        const status = readOr(`/proc/${pid}/cmdline`).includes('stream-step')
          ? ''
          : readOr(`/proc/${pid}/status`)
        return Number(/^RssAnon:\s*(\d+)/m.exec(status)?.[1] ?? 0) / 1024
      })
      most = Math.max(
        most,
        sizes.reduce((sum, size) => sum + size, 0),
      )
    }
  })
  return most
}

/** Streamed against batch, over several nodes. */
const workflowCase = (
  name: string,
  about: string,
  spread: Spread,
  against: { system: string; far: number; rounds: number },
  goal: { atMost: number } | { atLeast: number },
): Case => ({
  name,
  about: `${about}; 1 Gbit/s between namespaces; every byte checked`,
  unit: 's',
  better: 'lower',
  take: 'median',
  rounds: against.rounds,
  arms: [
    arm(STREAMED, () => streamedOver(spread)),
    arm(against.system, () => batchOver(spread, against.far)),
  ],
  goals: [{ of: STREAMED, against: against.system, ...goal }],
})

const oneCase = (name: string, about: string, shape: Shape, goals: Case['goals']): Case => ({
  name,
  about,
  unit: 's',
  better: 'lower',
  take: 'median',
  rounds: 3,
  arms: [
    arm(STREAMED, () => streamed(shape)),
    arm(WIRE, () => onTheWire(shape)),
    arm(BATCH, () => batch(shape)),
  ],
  ...(goals === undefined ? {} : { goals }),
})

const checked = 'commit on close, 1 Gbit/s between namespaces; every byte checked'
const large: Shape = { files: 1, size: 1024 * MIB, compute: 0 }
const toFour: Shape = { files: 1, size: 512 * MIB, compute: 0 }

await bench('stream-nodes', [
  oneCase('1x1GiB', `1 x 1 GiB from node to node; ${checked}`, large, [
    { of: STREAMED, against: WIRE, atMost: 1.05 },
    { of: STREAMED, against: BATCH, atMost: 0.6 },
  ]),
  oneCase(
    '100x10MiB',
    `100 x 10 MiB from node to node; ${checked}`,
    { files: 100, size: 10 * MIB, compute: 0 },
    [
      { of: STREAMED, against: WIRE, atMost: 1.05 },
      { of: STREAMED, against: BATCH, atMost: 0.6 },
    ],
  ),
  oneCase(
    'compute',
    '100 x 10 MiB, 20 ms of compute per file in each step',
    { files: 100, size: 10 * MIB, compute: 20_000 },
    [{ of: STREAMED, against: BATCH, atMost: 0.55 }],
  ),
  {
    name: '1to4',
    about: `512 MiB to 4 nodes that all read everything; ${checked}`,
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 3,
    arms: [arm(STREAMED, () => streamed({ ...toFour, readers: 4 })), arm(ONE, () => streamed(toFour))],
    goals: [{ of: STREAMED, against: ONE, atMost: 1.3 }],
  },
  workflowCase(
    'many',
    '10,000 x 100 KB from 4 nodes to one',
    manyToOne(4, 10_000, 100_000),
    { system: FAR, far: 2000, rounds: 1 },
    { atMost: 1 / 8 },
  ),
  workflowCase(
    'mapreduce',
    '192 MiB in 24 parts, 2 map-reducers, 24 results, 4 nodes (the paper: 33 % less time)',
    mapReduce(192, 24),
    { system: BATCH, far: 0, rounds: 3 },
    { atMost: 0.67 },
  ),
  workflowCase(
    'genomes',
    '4 directories of 2,504 files of 4 kB merged into one, 4 nodes (the paper: 39 % less time)',
    genomes(2504, 4000),
    { system: BATCH, far: 0, rounds: 3 },
    { atMost: 0.61 },
  ),
  {
    name: 'memory',
    about: 'memory of the processes of a node while 1 GiB goes from node to node: a window, not the file',
    unit: 'MiB',
    better: 'lower',
    take: 'median',
    rounds: 1,
    arms: [arm(STREAMED, () => memoryOf(large)), arm(SMALL, () => memoryOf({ ...large, size: 128 * MIB }))],
    goals: [{ of: STREAMED, against: SMALL, atMost: 1.5 }],
  },
])
