import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { seekingDevice, throttleMissing, throttledDisk } from './io/devices.ts'
import { rateOf, tasksToRecover } from './io/recovery.ts'
import { sharedRuns } from './io/shared-runs.ts'
import { runProgram } from './run-program.ts'

const TASKS = 500
const BYTES = 2 ** 17
const SWEEP = [1, 2, 4, 8, 16, 32]
/** The device changes when so many have ended. */
const CHANGE = 250
const MOST_TO_RECOVER = 20

interface Device {
  path: string
  /** What makes it another device, in the middle of a run. */
  change: { after: number } & ({ file: string; text: string } | { line: string })
  close(): void
}

interface Setting {
  kind: 'socket' | 'disk'
  about: string
  bandwidth: number
  /** What the change is, and the limits to compare with. */
  changes: { about: string; sweep: number[] }
  missing: string | undefined
  device(): Promise<Device>
}

interface Result {
  seconds: number
  learning: number
  times: number[]
}

const SETTINGS: Record<string, Setting> = {
  seeks: {
    kind: 'socket',
    about: 'a device that seeks between streams (bench/io/seek-device.mjs)',
    bandwidth: 50,
    changes: { about: 'its seeks take twenty times as long', sweep: [1, 2, 4, 8, 16] },
    missing: undefined,
    async device() {
      const { path, close } = await seekingDevice()
      return { path, close, change: { after: CHANGE, line: 'seek 1.2' } }
    },
  },
  throttle: {
    kind: 'disk',
    about: 'a loop device with 30 MB/s, with fsync',
    bandwidth: 30,
    changes: { about: 'it has 15 MB/s', sweep: [1, 4, 16] },
    missing: throttleMissing(),
    async device() {
      const { path, close, throttle } = throttledDisk(30)
      return { path, close, change: { after: CHANGE, ...throttle(15) } }
    },
  },
}

async function run(setting: Setting, limit: string | number, changes: boolean): Promise<Result> {
  const { path, change, close } = await setting.device()
  try {
    const args = [setting.kind, path, TASKS, BYTES, setting.bandwidth, limit]
    const env = { UV_THREADPOOL_SIZE: '64', ...(changes ? { BENCH_CHANGE: JSON.stringify(change) } : {}) }
    return await runProgram<Result>('autotune.mjs', args, { env, journal: true })
  } finally {
    close()
  }
}

const ADAPTIVE = 'millrace, adaptive'
const AUTO = 'millrace, auto'
const staticName = (at: number): string => `static, ${at} at a time`
const common = { take: 'median', rounds: 3 } as const

function casesOf([name, setting]: [string, Setting]): Case[] {
  const { missing, bandwidth } = setting
  const arms: [string, string | number, number?][] = [
    [ADAPTIVE, 'adaptive'],
    [AUTO, 'auto'],
    ['millrace, bounded auto', 'bounded'],
    ...SWEEP.map((at): [string, number] => [staticName(at), bandwidth / at]),
    ['unlimited', 'unlimited', 1],
    ['no I/O tasks', 'none', 1],
  ]
  const runs = arms.map(([system, limit, rounds]) => ({
    arm: { system, missing, ...(rounds ? { rounds } : {}) },
    of: sharedRuns(() => run(setting, limit, false)),
  }))
  return [
    {
      ...common,
      name,
      unit: 's',
      better: 'lower',
      about: `${TASKS} writes of 128 KiB to ${setting.about}`,
      arms: runs.map(({ arm, of }) => ({ ...arm, run: async () => (await of('total')).seconds })),
      // Against each fixed limit, so also against the best of them.
      goals: SWEEP.flatMap(at => [
        { of: AUTO, against: staticName(at), atMost: 1.1 },
        { of: ADAPTIVE, against: staticName(at), atMost: 1.05 },
      ]),
    },
    {
      ...common,
      name: `${name}-learning`,
      unit: 'tasks',
      better: 'lower',
      about: 'tasks that were spent on trials, in the same runs',
      arms: runs
        .slice(1, 3)
        .map(({ arm, of }) => ({ ...arm, run: async () => (await of('learning')).learning })),
      goals: [{ of: AUTO, upTo: TASKS / 10, unit: 'tasks' }],
    },
    ...changeCases(name, setting),
  ]
}

/** The second half of a run in which the device changes: how fast it is with each limit, and how soon that is so. */
function changeCases(name: string, setting: Setting): Case[] {
  const { missing, bandwidth, changes } = setting
  const statics = changes.sweep.map(at => ({
    system: staticName(at),
    of: sharedRuns(() => run(setting, bandwidth / at, true)),
  }))
  const adaptive = { system: ADAPTIVE, of: sharedRuns(() => run(setting, 'adaptive', true)) }
  // The first tasks after the change began before it, or are those in which a limit is looked for.
  const rate = ({ times }: Result): number => rateOf(times.slice(MOST_TO_RECOVER))
  const recovered = async (): Promise<number> => {
    const rates: number[] = []
    for (const { of } of statics) rates.push(rate(await of('recovery')))
    return tasksToRecover((await adaptive.of('recovery')).times, Math.max(...rates))
  }
  return [
    {
      ...common,
      name: `${name}-change`,
      unit: 'tasks/s',
      better: 'higher',
      about: `the same, but from the middle of the run on ${changes.about}: the rate from ${MOST_TO_RECOVER} tasks later on`,
      arms: [adaptive, ...statics].map(({ system, of }): Arm => ({
        system,
        missing,
        run: async () => rate(await of('rate')),
      })),
      goals: statics.map(({ system }) => ({ of: ADAPTIVE, against: system, atLeast: 0.9 })),
    },
    {
      ...common,
      name: `${name}-recovery`,
      unit: 'tasks',
      better: 'lower',
      about:
        'tasks after the change until 20 of them end 0.9 times as fast as with the best fixed limit, in the same runs',
      arms: [{ system: ADAPTIVE, missing, run: recovered }],
      goals: [{ of: ADAPTIVE, upTo: MOST_TO_RECOVER, unit: 'tasks' }],
    },
  ]
}

await bench('autotune', Object.entries(SETTINGS).flatMap(casesOf))
