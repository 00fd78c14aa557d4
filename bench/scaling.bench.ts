import { availableParallelism } from 'node:os'
import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import type { Goal } from './goals.ts'
import { runProgram } from './run-program.ts'
import { speedUp } from './speed-up.ts'

/** How tasks of one program grow with the CPUs of a machine: 1, 2, 4, … threads, up to all of them. */
const CPUS = availableParallelism()
const THREADS = [1, 2, 4, 8, 16, 32, 64, 128].filter(threads => threads <= CPUS)
/** The machine that the goals are for; on others the same rows say how it goes there. */
const LARGE = 16
const TASKS = 200_000
const ELEMENTS = 1_000_000
const TSX = ['--import', import.meta.resolve('tsx')]

const named = (threads: number): string => `millrace, ${threads} threads`

interface Scaling {
  name: string
  unit: string
  about: string
  rounds?: number
  run(threads: number): Promise<number | number[]>
  /** What 16 threads must reach. */
  goal?: number
}

const scaling = ({ name, unit, about, rounds = 3, run, goal }: Scaling): Case => ({
  name,
  unit,
  about,
  rounds,
  better: 'higher',
  take: 'median',
  arms: THREADS.map(threads => ({ system: named(threads), run: () => run(threads) })),
  goals: goal !== undefined && CPUS >= LARGE ? [{ of: named(LARGE), upFrom: goal, unit } satisfies Goal] : [],
})

const settings = (threads: number, journal = true) => ({
  journal,
  env: { MILLRACE_CPUS: String(threads) },
})

const rate =
  (tasks: number, how: string, journal = true) =>
  async (threads: number): Promise<number> => {
    const args = [tasks, 'warm', how]
    const { seconds } = await runProgram<{ seconds: number }>('flat.mjs', args, settings(threads, journal))
    return tasks / seconds
  }

const ideal =
  (microseconds: number) =>
  async (threads: number): Promise<number[]> => {
    const args = [microseconds, threads]
    return (await runProgram<{ shares: number[] }>('spin.mjs', args, settings(threads))).shares
  }

const short = (microseconds: number, goal?: number): Case =>
  scaling({
    name: `ideal-${microseconds}us`,
    unit: 'of ideal',
    about: `tasks of ${microseconds} us by the clock: share of the time that all CPUs compute`,
    run: ideal(microseconds),
    ...(goal === undefined ? {} : { goal }),
  })

await bench('scaling', [
  short(50, 0.85),
  short(200, 0.93),
  short(1000, 0.95),
  scaling({
    name: 'map',
    unit: 'elements/s',
    about: `task.map of a list of ${ELEMENTS.toLocaleString('en-US')} elements that are given back`,
    run: rate(ELEMENTS, 'map'),
    goal: 2_000_000,
  }),
  scaling({
    name: 'empty',
    unit: 'tasks/s',
    about: `${TASKS.toLocaleString('en-US')} tasks that give back their argument`,
    run: rate(TASKS, 'barrier'),
  }),
  scaling({
    name: 'empty-no-journal',
    unit: 'tasks/s',
    about: 'the same without a journal',
    run: rate(TASKS, 'barrier', false),
  }),
  scaling({
    name: 'matrix-64',
    unit: 'x sequential',
    about: '1024 x 1024 in shared blocks of 64 x 64: how many times as fast as plain calls',
    rounds: 1,
    run: threads => speedUp('matrix.ts', [1024, 64, 'shared'], { ...settings(threads), execArgv: TSX }),
  }),
])
