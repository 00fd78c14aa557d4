import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { throttleMissing, throttledDisk } from './io/devices.ts'
import { runProgram } from './run-program.ts'

/** MB/s of the slow layer. */
const BANDWIDTH = 20
/** About 0.04 s of arithmetic per task, so that the slow layer is what takes long. */
const ROUNDS = 30_000_000
const POLICIES = ['fcfs', 'priority', 'backfill']
const ALONE = 'slow layer alone'

/** The sizes of the thesis, 200 MB and 800 MB, a hundredth of them. */
const WORKLOADS = {
  homogeneous: { sizes: Array.from({ length: 24 }, () => 4e6), io: 3, total: 0.56 },
  heterogeneous: {
    sizes: Array.from({ length: 24 }, (_, i) => (i % 3 === 0 ? 8e6 : 2e6)),
    io: 5,
    total: 0.52,
  },
}

interface Result {
  seconds: number
  settled: number
  milliseconds: number
}

const KEYS = ['seconds', 'milliseconds', 'settled'] as const
const measured = new Map<string, Result[]>()

/** All cases of a workload look at the same runs: each arm is run once per round, and its results are taken in turn. */
async function run(name: string, sizes: number[], policy: string, which: keyof Result): Promise<number> {
  const waiting = measured.get(`${name} ${policy} ${which}`)?.shift()
  if (waiting) return waiting[which]
  const slow = throttledDisk(BANDWIDTH)
  const fast = mkdtempSync('/dev/shm/millrace-bench-tiers-')
  const disk = mkdtempSync(join(tmpdir(), 'millrace-bench-tiers-'))
  try {
    const args = [policy, fast, disk, slow.path, sizes.join(','), ROUNDS, BANDWIDTH]
    const env = { UV_THREADPOOL_SIZE: '64' }
    const result = await runProgram<Result>('tiers.mjs', args, { env })
    for (const key of KEYS) {
      const at = `${name} ${policy} ${key}`
      if (key !== which) measured.set(at, [...(measured.get(at) ?? []), result])
    }
    return result[which]
  } finally {
    slow.close()
    for (const folder of [fast, disk]) rmSync(folder, { recursive: true, force: true })
  }
}

function casesOf([name, { sizes, io, total }]: [string, (typeof WORKLOADS)['homogeneous']]): Case[] {
  const arms = (which: keyof Result): Arm[] =>
    [...POLICIES, 'slow'].map(policy => ({
      system: policy === 'slow' ? ALONE : `millrace, ${policy}`,
      missing: throttleMissing(),
      run: () => run(name, sizes, policy, which),
    }))
  const common = { better: 'lower', take: 'median', rounds: 3 } as const
  const against = (atMost: number) =>
    POLICIES.map(policy => ({ of: `millrace, ${policy}`, against: ALONE, atMost }))
  const megabytes = sizes.reduce((sum, one) => sum + one, 0) / 1e6
  return [
    {
      ...common,
      name: `${name}-total`,
      unit: 's',
      about: `${sizes.length} tasks compute and checkpoint ${megabytes} MB in all; memory, disk, and ${BANDWIDTH} MB/s`,
      arms: arms('seconds'),
      goals: against(total),
    },
    {
      ...common,
      name: `${name}-io`,
      unit: 'ms/MB',
      about: 'the time of checkpoints in the same runs',
      arms: arms('milliseconds'),
      goals: against(Number((1 / io).toFixed(3))),
    },
    {
      ...common,
      name: `${name}-settled`,
      unit: 's',
      about: 'until all files are at their paths on the slow layer, in the same runs',
      arms: arms('settled'),
    },
  ]
}

await bench('tiers', Object.entries(WORKLOADS).flatMap(casesOf))
