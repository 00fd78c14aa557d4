import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { roundsPerSecond } from './io/calibrate.ts'
import { throttleMissing, throttledDisk } from './io/devices.ts'
import { sharedRuns } from './io/shared-runs.ts'
import { runProgram } from './run-program.ts'

const TASKS = 24
const BYTES = 2_400_000
/** MB/s of the disk. Writing and syncing these bytes takes 10 to 15 ms of CPU in every arm: 4% of what a task computes. */
const BANDWIDTH = 10
/** Two CPUs compute as long as the disk writes. */
const ROUNDS = Math.round(((2 * BYTES) / (BANDWIDTH * 1e6)) * (await roundsPerSecond()))

interface Times {
  seconds: number
  /** Of a task that computes: in all, with a CPU, and waiting for one. */
  milliseconds: number
  running: number
  waiting: number
}

const PLAIN = 'without I/O tasks'
/** Between its writes and its fsync a checkpoint leaves the disk idle: it takes several to keep it busy. */
const BEST = 'millrace, I/O tasks, 8 at a time'

const LIMITS: Record<string, string> = {
  [BEST]: '8',
  'millrace, I/O tasks, 1 at a time': '1',
  'millrace, I/O tasks, 2 at a time': '2',
  'millrace, I/O tasks, adaptive': 'adaptive',
  'millrace, I/O tasks, no limit': 'unlimited',
  [PLAIN]: 'plain',
}

const runs = Object.entries(LIMITS).map(([system, limit]) => ({
  system,
  of: sharedRuns(async () => {
    const disk = throttledDisk(BANDWIDTH)
    try {
      const args = [limit, disk.path, TASKS, ROUNDS, BYTES, BANDWIDTH]
      return await runProgram<Times>('overlap.mjs', args, { env: { UV_THREADPOOL_SIZE: '64' } })
    } finally {
      disk.close()
    }
  }),
}))

const arms = (which: keyof Times): Arm[] =>
  runs.map(({ system, of }) => ({
    system,
    missing: throttleMissing(),
    ...(system === BEST || system === PLAIN ? {} : { rounds: 2 }),
    run: async () => (await of(which))[which],
  }))

const common = { better: 'lower', take: 'median', rounds: 5 } as const

const cases: Case[] = [
  {
    ...common,
    name: 'total',
    unit: 's',
    about: `${TASKS} tasks compute and checkpoint ${BYTES / 1e6} MB each to a disk with ${BANDWIDTH} MB/s`,
    arms: arms('seconds'),
    goals: [{ of: BEST, against: PLAIN, atMost: 0.62 }],
  },
  {
    ...common,
    name: 'compute',
    unit: 'ms',
    about: 'the time of a task that computes, in the same runs',
    arms: arms('milliseconds'),
    goals: [{ of: BEST, against: PLAIN, atMost: 1.03 }],
  },
  {
    ...common,
    name: 'compute-running',
    unit: 'ms',
    about: 'of that, what it had a CPU for: more means that the CPUs themselves were slower',
    arms: arms('running'),
  },
  {
    ...common,
    name: 'compute-waiting',
    unit: 'ms',
    about: 'of that, what it waited for a CPU that another thread had',
    arms: arms('waiting'),
  },
]

await bench('overlap', cases)
