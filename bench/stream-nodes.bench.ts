import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { streamRunOnNodes } from '../src/cluster/streams/stream-run.ts'
import { packageVersion } from '../src/runtime/version.ts'
import { bench, type Case } from './harness.ts'
import { programPath } from './run-program.ts'
import { Namespaces } from './stream/namespaces.ts'
import { stepProgram } from './stream/workflow.ts'

const MIB = 2 ** 20
const PORT = 7070
const STREAMED = 'millrace'
const WIRE = 'the bytes over TCP, nothing else'
const BATCH = 'batch through a folder of the same rate'
const ONE = 'millrace, 1 to 1'

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

async function inFolder<T>(root: string, body: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(root, 'millrace-bench-nodes-'))
  try {
    return await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function withNodes<T>(count: number, body: (nodes: Namespaces) => Promise<T>): Promise<T> {
  const nodes = Namespaces.make(count)
  try {
    return await body(nodes)
  } finally {
    nodes.end()
  }
}

/** Seconds from the begin of the writer to the end of the last reader: without starting the nodes, which all runs pay once. */
function streamed(shape: Shape): Promise<number> {
  const readers = Array.from({ length: shape.readers ?? 1 }, (_, i) => i + 2)
  return withNodes(readers.length + 1, nodes =>
    inFolder(tmpdir(), async place => {
      const streaming = [{ name: 'data*', committed: 'on_close', mode: 'no_update' }]
      const graph = [
        { name: 'writer', output_stream: ['data*'], streaming },
        ...readers.map(i => ({ name: `reader${i}`, input_stream: ['data*'], output_stream: [`end${i}`] })),
      ]
      const file = join(place, 'Config.json')
      writeFileSync(file, JSON.stringify({ name: 'bench', IO_Graph: graph, permanent: ['end*'] }))
      const line = (way: 'OUT' | 'IN'): string =>
        [stepProgram(), ...wordsOf(shape, way)].map(word => `'${word}'`).join(' ')
      const steps = [
        {
          step: 'writer',
          nodes: [nodes.nameOf(1)],
          run: `date +%s.%N > $MILLRACE_PLACE/begun; ${line('OUT')}`,
        },
        ...readers.map(i => ({
          step: `reader${i}`,
          nodes: [nodes.nameOf(i)],
          run: `${line('IN')} && date +%s.%N > end${i}`,
        })),
      ]
      let told = ''
      const io = { out: () => undefined, err: (text: string) => void (told += text) }
      const options = { place, version: packageVersion() }
      const code = await streamRunOnNodes(file, steps, nodes.specs, options, io)
      if (code !== 0 || told.includes('no direct connection')) throw new Error(told)
      const time = (name: string): number => Number(readFileSync(join(place, name), 'utf8'))
      return Math.max(...readers.map(i => time(`end${i}`))) - time('begun')
    }),
  )
}

async function transfer(nodes: Namespaces, from: number, to: number, bytes: number): Promise<void> {
  const wire = programPath('wire.mjs')
  await Promise.all([
    nodes.run(to, process.execPath, [wire, 'take', String(PORT), String(bytes)]),
    nodes.run(from, process.execPath, [wire, 'send', nodes.addressOf(to), String(PORT), String(bytes)]),
  ])
}

const seconds = async (body: () => Promise<void>): Promise<number> => {
  const began = performance.now()
  await body()
  return (performance.now() - began) / 1000
}

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
])
