import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { bench } from './harness.ts'
import { runProgram } from './run-program.ts'

interface Measured {
  seconds: number
  each: number
  gigabytes: number
}

/** Small workflows whose nodes are lost; `each` is CPU time of its own. */
interface OnNodes extends Measured {
  /** Every task ended once, but for those that made again what was lost. */
  isOnce: boolean
  lost: number
  remade: number
}

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
const run = (tasks: number, mode = ''): Promise<Measured> =>
  runProgram<Measured>('simulate-tasks.ts', [tasks, mode], { execArgv: ['--import', tsx] })

/** As many workflows at one time on few nodes as on many, so that what differs is the nodes. */
const OPEN = 320_000
const onNodes = async (nodes: number, tasks: number): Promise<OnNodes> => {
  const found = await runProgram<OnNodes>('simulate-nodes.ts', [nodes, tasks, OPEN], {
    execArgv: ['--import', tsx, '--max-old-space-size=8000'],
  })
  if (!found.isOnce) throw new Error(`not every task was run once: ${JSON.stringify(found)}`)
  return found
}
let large: Promise<OnNodes> | null = null
const tenMillion = (): Promise<OnNodes> => (large ??= onNodes(10_000, 10_000_000))

/** Its time and its memory are of one process. */
const remembered = new Map<string, Promise<Measured>>()
const million = (mode = ''): Promise<Measured> => {
  const known = remembered.get(mode) ?? run(1_000_000, mode)
  remembered.set(mode, known)
  return known
}

await bench('simulate-speed', [
  {
    name: 'a million tasks',
    unit: 's',
    better: 'lower',
    take: 'best',
    rounds: 1,
    about: 'simulating a million tasks on 3,456 nodes of 48 CPUs',
    arms: [{ system: 'millrace', run: async () => (await million()).seconds }],
    goals: [{ of: 'millrace', below: 60, unit: 's' }],
  },
  {
    name: 'memory of a million tasks',
    unit: 'GB',
    better: 'lower',
    take: 'best',
    rounds: 1,
    about: 'most memory that the process had',
    arms: [{ system: 'millrace', run: async () => (await million()).gigabytes }],
    goals: [{ of: 'millrace', below: 4, unit: 'GB' }],
  },
  {
    name: 'a million tasks, half of them I/O',
    unit: 's',
    better: 'lower',
    take: 'best',
    rounds: 1,
    about: 'the same where every second task writes 290 MB to the disk of a node',
    arms: [{ system: 'millrace', run: async () => (await million('io')).seconds }],
    goals: [{ of: 'millrace', below: 180, unit: 's' }],
  },
  {
    name: 'cost per task',
    unit: 'us',
    better: 'lower',
    take: 'best',
    rounds: 2,
    about: 'time per task among a million and among ten thousand, the nodes being there already',
    arms: [
      { system: 'millrace, a million', run: async () => (await run(1_000_000)).each },
      { system: 'millrace, ten thousand', run: async () => (await run(10_000)).each },
    ],
    goals: [{ of: 'millrace, a million', against: 'millrace, ten thousand', atMost: 1.5 }],
  },
  {
    name: 'ten million tasks on 10,000 nodes',
    unit: 's',
    better: 'lower',
    take: 'best',
    rounds: 1,
    about:
      '10,000 nodes of 48 CPUs, workflows of five tasks, a node lost every minute and replaced: every task once',
    arms: [{ system: 'millrace', run: async () => (await tenMillion()).seconds }],
    goals: [{ of: 'millrace', below: 600, unit: 's' }],
  },
  {
    name: 'memory of ten million tasks on 10,000 nodes',
    unit: 'GB',
    better: 'lower',
    take: 'best',
    rounds: 1,
    about: 'most memory that the process had',
    arms: [{ system: 'millrace', run: async () => (await tenMillion()).gigabytes }],
    goals: [{ of: 'millrace', below: 8, unit: 'GB' }],
  },
  {
    name: 'cost per decision, by nodes',
    unit: 'us',
    better: 'lower',
    take: 'best',
    rounds: 1,
    about: 'CPU time per task on 10,000 nodes and on 10, with as many workflows at one time',
    arms: [
      { system: 'millrace, 10,000 nodes', run: async () => (await tenMillion()).each },
      { system: 'millrace, 10 nodes', run: async () => (await onNodes(10, 2_000_000)).each },
    ],
    goals: [{ of: 'millrace, 10,000 nodes', against: 'millrace, 10 nodes', atMost: 1.5 }],
  },
])
