import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeadDevice } from './head-device.ts'
import { IoRig, MB, device } from './io-rig.ts'
import { SliceDevice } from './slice-device.ts'

/**
 * Devices on which tasks take now long, now short, on a virtual clock and with random numbers from seeds: what is found is
 * the same in every run of this file.
 */

type Random = () => number

function randomFrom(seed: number): Random {
  let state = (seed * 7919 + 13) >>> 0
  return () => {
    state ^= state << 13
    state >>>= 0
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 2 ** 32
  }
}

const normal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
const lognormal = (median: number, sigma: number, random: Random): number =>
  median * Math.exp(sigma * normal(random))
const stall = (share: number, mean: number, random: Random): number =>
  random() < share ? -Math.log(1 - random()) * mean : 0

type Device = (rig: IoRig, random: Random) => { run(): void; ended: number[] }

const throttled =
  (sync: (random: Random) => number): Device =>
  (rig, random) =>
    new SliceDevice(rig, { rate: 30, bytes: 2 ** 16, sync: () => sync(random) })
const withHead =
  (delay: (random: Random) => number): Device =>
  (rig, random) =>
    new HeadDevice(rig, { open: 12, block: 1.31, seek: 0.06, blocks: 2, delay: () => delay(random) })

const TASKS = 500
const SEEDS = 5

function timeOf(
  make: Device,
  megabytes: number,
  bandwidth: number | 'adaptive' | 'auto',
  seed: number,
): number {
  const rig = new IoRig({ storage: [device('disk', megabytes)], ioExecutors: 64 })
  rig.many(TASKS, 'io', { bandwidth })
  const storage = make(rig, randomFrom(seed))
  storage.run()
  assert.equal(storage.ended.length, TASKS)
  return rig.now
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1] as number

for (const [name, megabytes, make, adaptive, auto] of [
  ['a throttle that lets writes through in slices', 30, throttled(r => lognormal(1, 0.5, r)), 1.05, 1.1],
  ['a throttle before a slow disk', 30, throttled(r => lognormal(8, 0.7, r)), 1.05, 1.1],
  [
    'a throttle before a disk that stalls',
    30,
    throttled(r => lognormal(2, 1, r) + stall(0.1, 60, r)),
    1.1,
    1.2,
  ],
  [
    'a head, and tasks that come late',
    50,
    withHead(r => 0.2 + r() * 0.8 + (r() < 0.1 ? r() * 15 : 0)),
    1.08,
    1.1,
  ],
  ['a head, and tasks of which no two take the same time', 50, withHead(r => lognormal(6, 1, r)), 1.3, 1.3],
] as const) {
  test(`given ${name}, limits that are found should be near to the best fixed one`, context => {
    const seeds = Array.from({ length: SEEDS }, (_, i) => i + 1)
    const middle = (bandwidth: number | 'adaptive' | 'auto'): number =>
      median(seeds.map(seed => timeOf(make, megabytes, bandwidth, seed)))
    const best = Math.min(...[8, 16].map(k => middle((megabytes * MB) / k)))
    const [adapted, learned] = [middle('adaptive') / best, middle('auto') / best]
    context.diagnostic(`adaptive ${adapted.toFixed(3)}, auto ${learned.toFixed(3)} times the best`)
    assert(adapted <= adaptive, `adaptive: ${adapted}`)
    assert(learned <= auto, `auto: ${learned}`)
  })
}

/** The first task of all is slow, and those that come after it take more or less long until all runs evenly. */
const coldHead = (random: Random): (() => number) => {
  let begun = 0
  return () => {
    begun++
    const late = begun === 1 ? 60 + random() * 60 : begun < 8 ? random() * 12 : 0
    return 0.2 + random() * 0.8 + late
  }
}

/** Milliseconds for all tasks but the first, which runs before. They are submitted so many milliseconds after another. */
function timeFromCold(bandwidth: number | 'adaptive' | 'auto', seed: number, gap: number): number {
  const rig = new IoRig({ storage: [device('disk', 50)], ioExecutors: 64 })
  const delay = coldHead(randomFrom(seed))
  const storage = new HeadDevice(rig, { open: 12, block: 1.31, seek: 0.06, blocks: 2, delay })
  rig.many(1, 'io', { bandwidth })
  storage.run()
  const from = rig.now
  let submitted = 0
  const submit = (): boolean => {
    for (; submitted < TASKS && rig.now - from >= submitted * gap; submitted++) rig.write('io', { bandwidth })
    return false
  }
  submit()
  while (storage.ended.length < TASKS + 1) {
    storage.run(submit)
    rig.now++
    submit()
  }
  return rig.now - from
}

for (const [name, gap] of [
  ['at once', 0],
  ['while the first of them run', 0.5],
  ['not much faster than they run', 1.5],
] as const) {
  test(`given a head and threads that have to begin first, and tasks that come ${name}, limits should be near to the best`, context => {
    const seeds = Array.from({ length: 9 }, (_, i) => i + 1)
    const times = (bandwidth: number | 'adaptive' | 'auto'): number[] =>
      seeds.map(seed => timeFromCold(bandwidth, seed, gap))
    const best = median(times((50 * MB) / 8))
    const [adapted, learned] = [median(times('adaptive')) / best, times('auto').map(time => time / best)]
    const worst = Math.max(...learned)
    context.diagnostic(`adaptive ${adapted.toFixed(3)}, auto at most ${worst.toFixed(3)} times the best`)
    assert(adapted <= 1.05, `adaptive: ${adapted}`)
    assert(worst <= 1.1, `auto: ${worst}`)
  })
}
