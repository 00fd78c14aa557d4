import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { roundsPerSecond } from './io/calibrate.ts'
import { throttleMissing, throttledDisk } from './io/devices.ts'
import { sharedRuns } from './io/shared-runs.ts'
import { runProgram } from './run-program.ts'

/** MB/s of the slow layer. */
const BANDWIDTH = 20
const PHASES = 4
/** Two CPUs compute 0.6 times as long as the slow layer writes: that much follows from what the thesis reports. */
const COMPUTING = 0.6
const POLICIES = ['fcfs', 'priority', 'backfill']
const ALONE = 'slow layer alone'

/** Files of a phase; 4 MB and 1 MB are the 800 MB and 200 MB of the thesis, a two-hundredth of them. */
const WORKLOADS = {
  homogeneous: { sizes: Array.from({ length: 8 }, () => 2e6), io: 3, total: 0.56 },
  heterogeneous: { sizes: [4e6, 1e6, 4e6, 1e6, 4e6, 1e6], io: 5, total: 0.52 },
}

interface Result {
  seconds: number
  saving: number
  settled: number
}

const speed = await roundsPerSecond()

async function run(sizes: number[], policy: string): Promise<Result> {
  const slow = throttledDisk(BANDWIDTH)
  const fast = mkdtempSync('/dev/shm/millrace-bench-tiers-')
  const disk = mkdtempSync(join(tmpdir(), 'millrace-bench-tiers-'))
  const bytes = sizes.reduce((sum, one) => sum + one, 0)
  const perTask = ((bytes / (BANDWIDTH * 1e6)) * COMPUTING * 2) / sizes.length
  try {
    const rounds = Math.round(perTask * speed)
    const args = [policy, fast, disk, slow.path, PHASES, sizes.join(','), rounds, BANDWIDTH]
    return await runProgram<Result>('tiers.mjs', args, { env: { UV_THREADPOOL_SIZE: '64' } })
  } finally {
    slow.close()
    for (const folder of [fast, disk]) rmSync(folder, { recursive: true, force: true })
  }
}

function casesOf([name, { sizes, io, total }]: [string, (typeof WORKLOADS)['homogeneous']]): Case[] {
  const runs = [...POLICIES, 'slow'].map(policy => ({
    system: policy === 'slow' ? ALONE : `millrace, ${policy}`,
    of: sharedRuns(() => run(sizes, policy)),
  }))
  const arms = (which: keyof Result): Arm[] =>
    runs.map(({ system, of }) => ({
      system,
      missing: throttleMissing(),
      run: async () => (await of(which))[which],
    }))
  const common = { better: 'lower', take: 'median', rounds: 3, unit: 's' } as const
  const against = (atMost: number) =>
    POLICIES.map(policy => ({ of: `millrace, ${policy}`, against: ALONE, atMost }))
  const megabytes = sizes.reduce((sum, one) => sum + one, 0) / 1e6
  return [
    {
      ...common,
      name: `${name}-total`,
      about: `${PHASES} times ${sizes.length} tasks compute, then checkpoint ${megabytes} MB; memory, disk, and ${BANDWIDTH} MB/s`,
      arms: arms('seconds'),
      goals: against(total),
    },
    {
      ...common,
      name: `${name}-io`,
      about: 'the part of it that is for checkpoints, in the same runs',
      arms: arms('saving'),
      goals: against(Number((1 / io).toFixed(3))),
    },
    {
      ...common,
      name: `${name}-settled`,
      about: 'until all files are at their paths on the slow layer, in the same runs',
      arms: arms('settled'),
    },
  ]
}

await bench('tiers', Object.entries(WORKLOADS).flatMap(casesOf))
