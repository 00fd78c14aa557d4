import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { bench } from './harness.ts'
import { runProgram } from './run-program.ts'

interface Measured {
  seconds: number
  each: number
  gigabytes: number
}

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
const run = (tasks: number, mode = ''): Promise<Measured> =>
  runProgram<Measured>('simulate-tasks.ts', [tasks, mode], { execArgv: ['--import', tsx] })

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
])
