import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { seekingDevice, throttleMissing, throttledDisk } from './io/devices.ts'
import { rateOf, tasksToRecover } from './io/recovery.ts'
import { sharedRuns } from './io/shared-runs.ts'
import { runProgram } from './run-program.ts'

const TASKS = 500
/** Tasks at one time; those far from the best are slow, and take part in one round only. */
const SWEEP = [1, 2, 4, 8, 16, 32]
const ONCE = [1, 2, 32]
/** In runs in which the device changes: all tasks, those before the change, and those that finding a limit may take. */
const CHANGING = { tasks: 300, after: 150, toRecover: 20 }

interface Device {
  path: string
  /** What makes it another device, in the middle of a run. */
  change: { file: string; text: string } | { line: string }
  close(): void
}

interface Change {
  name: string
  /** MB/s before and after. */
  from: number
  to: number
  sweep: number[]
}

interface Setting {
  kind: 'socket' | 'disk'
  about: string
  bandwidth: number
  /** Of a task. */
  kibibytes: number
  changes: Change[]
  missing: string | undefined
  device(change: { from: number; to: number }): Promise<Device>
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
    kibibytes: 128,
    changes: [
      { name: 'slower', from: 50, to: 15, sweep: [2, 4, 8] },
      { name: 'faster', from: 15, to: 50, sweep: [4, 8, 16] },
    ],
    missing: undefined,
    async device({ from, to }) {
      const { path, close } = await seekingDevice(from)
      return { path, close, change: { line: `rate ${to}` } }
    },
  },
  throttle: {
    kind: 'disk',
    about: 'a loop device with 30 MB/s, with fsync',
    bandwidth: 30,
    kibibytes: 64,
    changes: [{ name: 'slower', from: 30, to: 15, sweep: [1, 8] }],
    missing: throttleMissing(),
    async device({ from, to }) {
      const { path, close, throttle } = throttledDisk(from)
      return { path, close, change: throttle(to) }
    },
  },
}

async function run(setting: Setting, limit: string | number, change?: Change): Promise<Result> {
  const { kind, bandwidth, kibibytes } = setting
  const { path, change: how, close } = await setting.device(change ?? { from: bandwidth, to: bandwidth })
  try {
    const args = [kind, path, change ? CHANGING.tasks : TASKS, kibibytes * 1024, bandwidth, limit]
    const changing = change ? { BENCH_CHANGE: JSON.stringify({ after: CHANGING.after, ...how }) } : {}
    const env = { UV_THREADPOOL_SIZE: '64', ...changing }
    return await runProgram<Result>('autotune.mjs', args, { env, journal: true })
  } finally {
    close()
  }
}

const ADAPTIVE = 'millrace, adaptive'
const AUTO = 'millrace, auto'
const staticName = (at: number): string => `static, ${at} at a time`
const common = { take: 'median', rounds: 5 } as const

function casesOf([name, setting]: [string, Setting]): Case[] {
  const { missing, bandwidth } = setting
  const arms: [string, string | number, number?][] = [
    [ADAPTIVE, 'adaptive'],
    [AUTO, 'auto'],
    ['millrace, bounded auto', 'bounded', 1],
    ...SWEEP.map((at): [string, number, number?] =>
      ONCE.includes(at) ? [staticName(at), bandwidth / at, 1] : [staticName(at), bandwidth / at],
    ),
    ['unlimited', 'unlimited', 1],
    ['no I/O tasks', 'none', 1],
  ]
  const runs = arms.map(([system, limit, rounds]) => ({
    arm: { system, missing, ...(rounds ? { rounds } : {}) },
    of: sharedRuns(() => run(setting, limit)),
  }))
  return [
    {
      ...common,
      name,
      unit: 's',
      better: 'lower',
      about: `${TASKS} writes of ${setting.kibibytes} KiB to ${setting.about}`,
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
    ...setting.changes.flatMap(change => changeCases(name, setting, change)),
  ]
}

/** The second half of a run in which the device changes: how fast it is with each limit, and how soon that is so. */
function changeCases(name: string, setting: Setting, change: Change): Case[] {
  const { missing, bandwidth } = setting
  const { toRecover } = CHANGING
  const statics = change.sweep.map(at => ({
    system: staticName(at),
    of: sharedRuns(() => run(setting, bandwidth / at, change)),
  }))
  const adaptive = { system: ADAPTIVE, of: sharedRuns(() => run(setting, 'adaptive', change)) }
  // The first tasks after the change began before it, or are those with which a limit is looked for.
  const rate = ({ times }: Result): number => rateOf(times.slice(toRecover))
  const recovered = async (): Promise<number> => {
    const rates: number[] = []
    for (const { of } of statics) rates.push(rate(await of('recovery')))
    return tasksToRecover((await adaptive.of('recovery')).times, Math.max(...rates))
  }
  return [
    {
      ...common,
      name: `${name}-${change.name}`,
      unit: 'tasks/s',
      better: 'higher',
      about: `${CHANGING.tasks} of these, but half-way ${change.from} MB/s become ${change.to}: the rate from ${toRecover} tasks later on`,
      arms: [adaptive, ...statics].map(({ system, of }): Arm => ({
        system,
        missing,
        run: async () => rate(await of('rate')),
      })),
      goals: statics.map(({ system }) => ({ of: ADAPTIVE, against: system, atLeast: 0.95 })),
    },
    {
      ...common,
      name: `${name}-${change.name}-recovery`,
      unit: 'tasks',
      better: 'lower',
      about:
        'tasks after the change until 20 of them end 0.9 times as fast as with the best fixed limit, in the same runs',
      arms: [{ system: ADAPTIVE, missing, run: recovered }],
      goals: [{ of: ADAPTIVE, upTo: toRecover, unit: 'tasks' }],
    },
  ]
}

await bench('autotune', Object.entries(SETTINGS).flatMap(casesOf))
