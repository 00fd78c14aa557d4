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
const run = (tasks: number): Promise<Measured> =>
  runProgram<Measured>('simulate-tasks.ts', [tasks], { execArgv: ['--import', tsx] })

await bench('simulate-speed', [
  {
    name: 'a million tasks',
    unit: 's',
    better: 'lower',
    take: 'best',
    rounds: 1,
    about: 'simulating a million tasks on 3,456 nodes of 48 CPUs',
    arms: [{ system: 'millrace', run: async () => (await run(1_000_000)).seconds }],
    goals: [{ of: 'millrace', below: 60, unit: 's' }],
  },
  {
    name: 'memory of a million tasks',
    unit: 'GB',
    better: 'lower',
    take: 'best',
    rounds: 1,
    about: 'most memory that the process had',
    arms: [{ system: 'millrace', run: async () => (await run(1_000_000)).gigabytes }],
    goals: [{ of: 'millrace', below: 4, unit: 'GB' }],
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
