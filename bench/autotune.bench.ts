import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { seekingDevice, throttleMissing, throttledDisk } from './io/devices.ts'
import { runProgram } from './run-program.ts'

const TASKS = 500
const SWEEP = [1, 2, 4, 8, 16, 32]

interface Setting {
  kind: 'socket' | 'disk'
  bandwidth: number
  bytes: number
  missing: string | undefined
  device(): Promise<{ path: string; close(): void }>
}

async function seconds({ kind, bandwidth, bytes, device }: Setting, limit: string | number): Promise<number> {
  const { path, close } = await device()
  try {
    const env = { UV_THREADPOOL_SIZE: '64' }
    const args = [kind, path, TASKS, bytes, bandwidth, limit]
    return (await runProgram<{ seconds: number }>('autotune.mjs', args, { env })).seconds
  } finally {
    close()
  }
}

const arms = (setting: Setting): Arm[] => {
  const arm = (system: string, limit: string | number, rounds?: number): Arm => ({
    system,
    missing: setting.missing,
    run: () => seconds(setting, limit),
    ...(rounds ? { rounds } : {}),
  })
  return [
    arm('millrace, adaptive', 'adaptive'),
    arm('millrace, auto', 'auto'),
    arm('millrace, bounded auto', 'bounded'),
    ...SWEEP.map(at => arm(`static, ${at} at a time`, setting.bandwidth / at)),
    arm('unlimited', 'unlimited'),
    arm('no I/O tasks', 'none'),
  ]
}

const make = (name: string, about: string, setting: Setting): Case => ({
  name,
  unit: 's',
  better: 'lower',
  take: 'median',
  rounds: 3,
  about,
  arms: arms(setting),
  // Against each static limit, so also against the best of them.
  goals: SWEEP.flatMap(at => [
    { of: 'millrace, auto', against: `static, ${at} at a time`, atMost: 1.1 },
    { of: 'millrace, adaptive', against: `static, ${at} at a time`, atMost: 1.05 },
  ]),
})

await bench('autotune', [
  make(
    'seeks',
    `${TASKS} writes of 256 KiB to a device that seeks between streams (bench/io/seek-device.mjs)`,
    {
      kind: 'socket',
      bandwidth: 100,
      bytes: 2 ** 18,
      missing: undefined,
      device: seekingDevice,
    },
  ),
  make('throttle', `${TASKS} writes of 256 KiB with fsync to a loop device with 60 MB/s`, {
    kind: 'disk',
    bandwidth: 60,
    bytes: 2 ** 18,
    missing: throttleMissing(),
    device: async () => throttledDisk(60),
  }),
])
