import { MB, cpus, gain, io, time } from './build.ts'
import type { Build, Use } from './build.ts'
import { ctePower } from './platforms.ts'
import { percent } from './rows.ts'
import type { Row } from './rows.ts'
import { UNSTATED } from './unstated.ts'
import type { Unstated } from './unstated.ts'

/**
 * Storage layers (thesis 5.5): 12 nodes of CTE-Power, each with its own work and its own fast layers, so one of them is
 * simulated. Each task asks for as many MB/s as it writes MB. The baseline writes to the PFS only, from compute tasks.
 * All compute first and then write, round by round, a task per CPU.
 *
 * How long tasks compute follows from what is stated: where I/O gets f times as fast and all takes s less, I/O was
 * s / (1 - 1 / f) of the time. HMMER, 3 and 44%: two thirds, so computing takes half as long as writing. Alignment, 5
 * and 48%: 0.6, so computing takes 0.67 times as long. The synthetic workload mimics it.
 */
const CPUS = 40
const PFS = 900

type Sizes = readonly number[]
type Flush = 'off' | 'idle' | 'always'

const rounds =
  (tasks: number, { value: computing }: Unstated, sizes: Sizes, isBaseline: boolean) =>
  (build: Build): void => {
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length
    const seconds = (computing * CPUS * mean) / PFS
    let before = build.value()
    build.task('begin', 0, [[before, 'out']])
    for (let done = 0; done < tasks; done += CPUS) {
      const ends: Use[] = []
      for (let i = done; i < Math.min(tasks, done + CPUS); i++) {
        const megabytes = sizes[i % sizes.length] as number
        const result = build.value()
        const uses: Use[] = [
          [before, 'in'],
          [result, 'out'],
        ]
        build.task(`compute_${megabytes}`, seconds, uses)
        const file = build.file()
        const size = megabytes * MB
        const writes: Use[] = [
          [result, 'in'],
          [file, 'out', size],
        ]
        build.task(`write_${megabytes}`, 0, writes, isBaseline ? cpus(1) : io(size, size))
        ends.push([file, 'in', 0])
      }
      before = build.value()
      build.task('round', 0, [...ends, [before, 'out']])
    }
  }

/** HMMER: 48 sequences of 96 fragments for each node, 400 MB each. */
const HMMER = (isBaseline: boolean) => rounds(48 * 96, UNSTATED.hmmerComputing, [400], isBaseline)
/** Multi-reference alignment: each node has 2,400 sequences and two genomes, 200 and 800 MB; almost 3 TB. */
const ALIGNMENT = (isBaseline: boolean) => rounds(4800, UNSTATED.alignComputing, [200, 800], isBaseline)
/** Synthetic: 2,400 files, half of 800 and half of 500 MB. */
const SYNTHETIC = (isBaseline: boolean) => rounds(2400, UNSTATED.alignComputing, [800, 500], isBaseline)

/**
 * The most that any policy can gain without flushing: all layers are busy while anything is written, and the PFS takes
 * what the others have no room for.
 */
function bound(tasks: number, { value: computing }: Unstated, sizes: Sizes): number {
  const megabytes = (tasks * sizes.reduce((sum, size) => sum + size, 0)) / sizes.length
  const io = Math.max(megabytes / (6026 + 2743 + PFS), (megabytes - 2e6) / PFS)
  const before = megabytes / PFS
  return 1 - (computing * before + io) / ((1 + computing) * before)
}

const exactly = (share: number): string => `${(share * 100).toFixed(1)}%`

export async function tiersRows(): Promise<Row[]> {
  const platform = ctePower()
  const against = async (workload: (isBaseline: boolean) => (build: Build) => void) => {
    const base = await time(workload(true), { platform: ctePower(['pfs']) })
    return async (ioPolicy: string, flush: Flush): Promise<number> =>
      gain(base, await time(workload(false), { platform, ioPolicy, flush }))
  }
  const hmmer = await against(HMMER)
  const fcfs = [await hmmer('fcfs', 'off'), await hmmer('fcfs', 'idle')] as const
  const align = await against(ALIGNMENT)
  const aligned = {
    fcfs: await align('fcfs', 'off'),
    priority: await align('priority', 'off'),
    backfill: await align('backfill', 'off'),
    flushed: await align('backfill', 'idle'),
  }
  const synthetic = await against(SYNTHETIC)
  const plain = [await synthetic('priority', 'off'), await synthetic('backfill', 'off')] as const
  const withFlush = [await synthetic('priority', 'idle'), await synthetic('backfill', 'idle')] as const
  const isOrdered = aligned.fcfs <= aligned.priority && aligned.priority <= aligned.backfill
  return [
    {
      experiment: 'HMMER on three layers, FCFS with flushing',
      paper: '44%, best with flushing',
      ours: `${percent(fcfs[1])} (without ${percent(fcfs[0])})`,
      better: `flush always ${percent(await hmmer('fcfs', 'always'))}`,
      turning: fcfs[1] >= fcfs[0] ? 'flushing pays' : 'flushing does not pay',
      met: fcfs[1] >= 0.44 && fcfs[1] >= fcfs[0],
    },
    {
      experiment: 'Multi-reference alignment, backfilling with flushing',
      paper: '48%, best with flushing',
      ours: `${percent(aligned.flushed)} (without ${percent(aligned.backfill)})`,
      better: `flush always ${percent(await align('backfill', 'always'))}`,
      turning: aligned.flushed >= aligned.backfill ? 'flushing pays' : 'flushing does not pay',
      met: aligned.flushed >= 0.48 && aligned.flushed >= aligned.backfill,
    },
    {
      experiment: 'Multi-reference alignment, order of policies',
      paper: 'FCFS < priority < backfilling',
      ours: `FCFS ${exactly(aligned.fcfs)}, priority ${exactly(aligned.priority)}, backfilling ${exactly(aligned.backfill)}`,
      better: '',
      turning: `${isOrdered ? 'same order' : 'another order'}; no policy can gain more than ${exactly(bound(4800, UNSTATED.alignComputing, [200, 800]))}`,
      met: isOrdered,
    },
    {
      experiment: 'Synthetic 500/800 MB, priority and backfilling',
      paper: 'backfilling loses; wins with flushing',
      ours: `${plain.map(exactly).join(' and ')}; flushing ${withFlush.map(exactly).join(' and ')}`,
      better: `flush always ${percent(await synthetic('priority', 'always'))} and ${percent(await synthetic('backfill', 'always'))}`,
      turning: `${plain[1] < plain[0] ? 'loses' : 'does not lose'}; ${withFlush[1] > withFlush[0] ? 'wins' : 'does not win'}; no policy can gain more than ${exactly(bound(2400, UNSTATED.alignComputing, [800, 500]))}`,
      met: plain[1] < plain[0] && withFlush[1] > withFlush[0],
    },
  ]
}
