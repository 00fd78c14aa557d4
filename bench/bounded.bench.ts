import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
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

const measured = new Map<string, Result[]>()

/** Both cases look at the same runs: each arm is run once per round, and its results are taken in turn. */
async function run(limit: number | 'none', which: keyof Result): Promise<number> {
  const waiting = measured.get(`${limit} ${which}`)?.shift()
  if (waiting) return waiting[which]
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-bounded-'))
  try {
    const result = await runProgram<Result>('bounded.mjs', [folder, FILES, BYTES, ROUNDS, limit])
    const other = `${limit} ${which === 'seconds' ? 'megabytes' : 'seconds'}`
    measured.set(other, [...(measured.get(other) ?? []), result])
    return result[which]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const arms = (which: keyof Result): Arm[] => [
  { system: 'millrace, bounded', run: () => run(LIMIT, which) },
  { system: 'millrace, unbounded', run: () => run('none', which) },
]

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
