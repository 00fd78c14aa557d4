import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { throttleMissing } from './io/devices.ts'
import { PAGE_CACHE, recordCopyfile } from './replay/copyfile.ts'
import { recordOverlap, recordTiers } from './replay/programs.ts'
import type { Recording, Workload } from './replay/programs.ts'
import { predictedSeconds, realSeconds } from './replay/recorded.ts'
import type { Changes } from './replay/recorded.ts'
import { slowDiskMissing } from './slow-disk.ts'

/** Real times that are nearer to each other than this have no order, nor have those nearer than a run to its repetition. */
const TIE = 0.05

interface Variant {
  name: string
  record(): Promise<Recording>
  /** What its run has that the others have not. */
  changes: Changes
}

/** Made once, and looked at by all cases. */
function remembered<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => (made ??= make())
}

/**
 * A run that its repetition confirms. Where the two are not alike, there is a third, and the one in the middle counts: another process
 * was busy meanwhile. The replays have no say in it.
 */
async function confirmed(record: () => Promise<Recording>): Promise<Recording> {
  const runs = [await record(), await record()]
  const seconds = ({ run }: Recording): number => realSeconds(run)
  const [least, most] = [Math.min(...runs.map(seconds)), Math.max(...runs.map(seconds))]
  if (least < (1 - TIE) * most) runs.push(await record())
  return runs.sort((a, b) => seconds(a) - seconds(b))[runs.length >> 1] as Recording
}

/** Each run against its own replay, and whether the replays put the variants in the order of the runs. */
function casesOf(name: string, about: string, missing: string | undefined, given: Variant[]): Case[] {
  const variants = given.map(one => ({ ...one, record: remembered(() => confirmed(one.record)) }))
  const real = async ({ record }: Variant): Promise<number> => realSeconds((await record()).run)
  const replayed = async ({ record, changes }: Variant): Promise<number> => {
    const { run, constants } = await record()
    return predictedSeconds(run, constants, changes)
  }
  const arms = variants.flatMap((variant): Arm[] => [
    { system: `millrace ${variant.name}, replayed`, missing, run: () => replayed(variant) },
    { system: `${variant.name}, real`, missing, run: () => real(variant) },
  ])
  const goals = variants.flatMap(variant => {
    const pair = { of: `millrace ${variant.name}, replayed`, against: `${variant.name}, real` }
    return [
      { ...pair, atMost: 1.1 },
      { ...pair, atLeast: 0.9 },
    ]
  })
  const shared = { better: 'lower', take: 'median', rounds: 1 } as const
  // Variants that are one program with several policies can all be told from one run.
  const ofOneProgram = variants.filter(({ changes }) => changes.policy ?? changes.ioPolicy)
  const [first] = ofOneProgram
  // The first run once more, after all others: by so much runs differ here that are the same.
  const again = remembered(async () => {
    const own = given.find(({ name: one }) => one === first?.name) as Variant
    return realSeconds((await own.record()).run)
  })
  const tie = async (): Promise<number> => {
    if (!first) return TIE
    for (const one of variants) await real(one)
    const [a, b] = [await real(first), await again()]
    return Math.max(TIE, Math.abs(a - b) / Math.max(a, b))
  }
  const whatIf = async ({ changes }: Variant): Promise<number> => {
    const { run, constants } = await (first as Variant).record()
    return predictedSeconds(run, constants, changes)
  }
  const orders: Arm[] = [
    {
      system: 'millrace, replays',
      missing,
      run: async () => misplaced(variants, await tie(), real, replayed),
    },
  ]
  if (first) {
    const run = async (): Promise<number> => misplaced(ofOneProgram, await tie(), real, whatIf)
    orders.push({ system: 'millrace, what-if from the first run', missing, run })
  }
  const noise: Arm[] = first
    ? [{ system: `millrace ${first.name}, twice`, missing, run: async () => 100 * (await tie()) }]
    : []
  return [
    { ...shared, name, unit: 's', about, arms, goals },
    {
      ...shared,
      name: `${name}: order`,
      unit: 'pairs',
      about:
        'pairs in another order than the runs; those that are nearer than runs that are the same have none',
      arms: orders,
      goals: orders.map(({ system }) => ({ of: system, upTo: 0, unit: 'pairs' })),
    },
    ...(noise.length > 0
      ? [
          {
            ...shared,
            name: `${name}: noise`,
            unit: '%',
            about: `by how much a run and its repetition differ, at least ${TIE * 100}%`,
            arms: noise,
          },
        ]
      : []),
  ]
}

async function misplaced(
  variants: readonly Variant[],
  tie: number,
  real: (variant: Variant) => Promise<number>,
  predict: (variant: Variant) => Promise<number>,
): Promise<number> {
  const times = []
  for (const one of variants) times.push({ is: await real(one), said: await predict(one) })
  let wrong = 0
  for (const [i, a] of times.entries()) {
    for (const b of times.slice(i + 1)) {
      if (Math.abs(a.is - b.is) <= tie * Math.max(a.is, b.is)) continue
      if (a.is < b.is !== a.said < b.said) wrong++
    }
  }
  return wrong
}

const tiers = (workload: Workload): Case[] =>
  casesOf(
    `tiers, ${workload}`,
    'the program of the bench tiers: layers with each I/O policy, and the slow disk alone',
    throttleMissing(),
    ['fcfs', 'priority', 'backfill', 'slow'].map(policy => ({
      name: policy === 'slow' ? 'slow disk alone' : policy,
      record: () => recordTiers(workload, policy),
      changes: policy === 'slow' ? {} : { ioPolicy: policy },
    })),
  )

await bench('replay', [
  ...casesOf(
    'overlap',
    'the program of the bench overlap, with I/O tasks and without',
    throttleMissing(),
    (['io', 'plain'] as const).map(mode => ({
      name: mode === 'io' ? 'I/O tasks' : 'without I/O tasks',
      record: () => recordOverlap(mode),
      changes: {},
    })),
  ),
  ...tiers('homogeneous'),
  ...tiers('heterogeneous'),
  ...casesOf(
    'copyfile',
    'the workflow of the bench copyfile, one copy at a time',
    slowDiskMissing(),
    ['fifo', 'lifo'].map(policy => ({
      name: policy,
      record: () => recordCopyfile(policy),
      changes: { policy, node: { cpus: 1, cache: PAGE_CACHE } },
    })),
  ),
])
