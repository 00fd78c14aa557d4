import { spawnSync } from 'node:child_process'
import { bench } from './harness.ts'
import type { Case } from './harness.ts'
import { ExampleOnDisk } from './example-run.ts'
import type { ExampleRun } from './example-run.ts'
import { SlowDisk, slowDiskMissing } from './slow-disk.ts'

/** Images across, their pixels, and the memory that commands have; in the second, intermediate files exceed it. */
const SIZES = [
  { n: 4, size: 300, memory: 400 },
  { n: 7, size: 400, memory: 160 },
]
const POLICIES = ['lifo+hrf', 'fifo', 'lifo', 'rank']

const missing =
  slowDiskMissing() ??
  (spawnSync('which', ['mProjectPP']).status === 0 ? undefined : 'the package montage is not installed')

const results = new Map<string, Promise<ExampleRun>>()

async function run(policy: string, { n, size, memory }: (typeof SIZES)[number]): Promise<ExampleRun> {
  const disk = new SlowDisk({ megabytes: 900, read: 70, write: 59, memory: memory * 1e6 })
  try {
    const example = await ExampleOnDisk.install(disk, 'montage')
    return example.measure('mosaic', policy, [`n=${n}`, `size=${size}`])
  } finally {
    disk.close()
  }
}

function once(policy: string, which: (typeof SIZES)[number]): Promise<ExampleRun> {
  const key = `${policy} ${which.n}`
  const known = results.get(key) ?? run(policy, which)
  results.set(key, known)
  return known
}

const cases = SIZES.flatMap((which, i): Case[] => {
  const { n, size, memory } = which
  const arms = (value: (run: ExampleRun) => number) =>
    POLICIES.map(policy => ({
      system: `millrace ${policy}`,
      missing,
      run: async () => value(await once(policy, which)),
    }))
  const name = `${n} x ${n}`
  const about = `images of ${size} x ${size}, commands with ${memory} MB of memory; read 70, write 59 MB/s`
  const shared = { take: 'median' as const, rounds: 1, about }
  const best = POLICIES.slice(1).map(policy => ({
    of: `millrace ${policy}`,
    against: 'millrace lifo+hrf',
    atLeast: i > 0 && policy === 'fifo' ? 1.5 : 1,
  }))
  return [
    { name, unit: 's', better: 'lower', ...shared, arms: arms(({ seconds }) => seconds), goals: best },
    {
      name: `${name}: core utilization`,
      unit: '%',
      better: 'higher',
      ...shared,
      arms: arms(one => 100 * one.utilization),
    },
    {
      name: `${name}: page-cache hits`,
      unit: '%',
      better: 'higher',
      ...shared,
      arms: arms(one => 100 * one.hitRate),
    },
  ]
})
await bench('montage', cases)
