import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { sharedRuns } from './io/shared-runs.ts'
import { runProgram } from './run-program.ts'

const FILES = 60
const BYTES = 8_000_000
/** About 0.04 s of arithmetic in each task. */
const ROUNDS = 30_000_000
const LIMIT = 6 * BYTES

interface Result {
  seconds: number
  megabytes: number
}

async function run(limit: number | 'none'): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-bounded-'))
  try {
    return await runProgram<Result>('bounded.mjs', [folder, FILES, BYTES, ROUNDS, limit])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const runs = {
  'millrace, bounded': sharedRuns(() => run(LIMIT)),
  'millrace, unbounded': sharedRuns(() => run('none')),
}

const arms = (which: keyof Result): Arm[] =>
  Object.entries(runs).map(([system, of]) => ({ system, run: async () => (await of(which))[which] }))

const common = { better: 'lower', take: 'median', rounds: 3 } as const

const cases: Case[] = [
  {
    ...common,
    name: 'total',
    unit: 's',
    about: `${FILES} temporary files of ${BYTES / 1e6} MB are made and read; bounded by ${LIMIT / 1e6} MB`,
    arms: arms('seconds'),
    goals: [{ of: 'millrace, bounded', against: 'millrace, unbounded', atMost: 1.1 }],
  },
  {
    ...common,
    name: 'peak',
    unit: 'MB',
    about: 'the most that was on the disk at one time, looked at every 5 ms, in the same runs',
    arms: arms('megabytes'),
    goals: [{ of: 'millrace, bounded', upTo: LIMIT / 1e6, unit: 'MB' }],
  },
]

await bench('bounded', cases)
