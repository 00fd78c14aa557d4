import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { throttleMissing, throttledDisk } from './io/devices.ts'
import { runProgram } from './run-program.ts'

const TASKS = 24
/** About 0.4 s of arithmetic per task: two of them as long as the disk needs for two checkpoints. */
const ROUNDS = 300_000_000
const BYTES = 8_000_000
const BANDWIDTH = 40
/** Two checkpoints at one time keep the disk busy while a third is made. */
const LIMIT = BANDWIDTH / 2

interface Times {
  seconds: number
  milliseconds: number
}

const measured = new Map<string, Times[]>()

/** Both cases look at the same runs: each arm is run once per round, and its times are taken in turn. */
async function times(mode: 'io' | 'plain', which: keyof Times): Promise<number> {
  const waiting = measured.get(`${mode} ${which}`)?.shift()
  if (waiting) return waiting[which]
  const disk = throttledDisk(BANDWIDTH)
  try {
    const args = [mode, disk.path, TASKS, ROUNDS, BYTES, BANDWIDTH, LIMIT]
    const result = await runProgram<Times>('overlap.mjs', args, { env: { UV_THREADPOOL_SIZE: '64' } })
    const other = which === 'seconds' ? 'milliseconds' : 'seconds'
    measured.set(`${mode} ${other}`, [...(measured.get(`${mode} ${other}`) ?? []), result])
    return result[which]
  } finally {
    disk.close()
  }
}

const arms = (which: keyof Times): Arm[] =>
  (['io', 'plain'] as const).map(mode => ({
    system: mode === 'io' ? 'millrace, I/O tasks' : 'without I/O tasks',
    missing: throttleMissing(),
    run: () => times(mode, which),
  }))

const cases: Case[] = [
  {
    name: 'total',
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: `${TASKS} tasks compute and checkpoint ${BYTES / 1e6} MB each to a disk with ${BANDWIDTH} MB/s`,
    arms: arms('seconds'),
    goals: [{ of: 'millrace, I/O tasks', against: 'without I/O tasks', atMost: 0.62 }],
  },
  {
    name: 'compute',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: 'the time of a task that computes, in the same runs',
    arms: arms('milliseconds'),
    goals: [{ of: 'millrace, I/O tasks', against: 'without I/O tasks', atMost: 1.03 }],
  },
]

await bench('overlap', cases)
