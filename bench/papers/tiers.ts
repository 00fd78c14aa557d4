import { IO_POLICIES } from '../../src/core/io/io-policy.ts'
import type { SimulateOptions } from '../../src/simulate/simulate.ts'
import { MB, cpus, gain, io, time } from './build.ts'
import type { Build } from './build.ts'
import { ctePower } from './platforms.ts'
import { percent, waiting } from './rows.ts'
import type { Row } from './rows.ts'

/**
 * Storage layers (thesis 5.5): 12 nodes of CTE-Power. Each task asks for as many MB/s as it writes MB. The
 * baseline writes to the PFS only, from compute tasks. Tasks of unknown time compute as long as a round of them
 * writes to the PFS.
 */
const NODES = 12
const CPUS = NODES * 40
const PFS = 900

type Sizes = readonly number[]

/** Rounds of `tasks` computations, each of which writes a file of the sizes in turn; a round after the other. */
const rounds =
  (count: number, tasks: number, sizes: Sizes, isBaseline: boolean) =>
  (build: Build): void => {
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length
    const seconds = (Math.min(CPUS, tasks) * mean) / PFS
    let before = build.value()
    build.task('begin', 0, [[before, 'out']])
    for (let round = 0; round < count; round++) {
      const ends = []
      for (let i = 0; i < tasks; i++) {
        const megabytes = sizes[i % sizes.length] as number
        const result = build.value()
        build.task(`compute_${megabytes}`, seconds, [
          [before, 'in'],
          [result, 'out'],
        ])
        const file = build.file()
        build.task(
          `write_${megabytes}`,
          0,
          [
            [result, 'in'],
            [file, 'out', megabytes * MB],
          ],
          isBaseline ? cpus(1) : io(megabytes * MB, megabytes * MB),
        )
        ends.push(file)
      }
      const next = build.value()
      // The next round computes when this one is written: alignment phase, then writing phase.
      build.task('round', 0, [
        ...ends
          .map(file => [file, 'in'] as const)
          .map(([file]) => [file, 'in', 0] as [typeof file, 'in', number]),
        [next, 'out'],
      ])
      before = next
    }
  }

/** HMMER: 48 sequences of 96 fragments on each node, 400 MB each. */
const HMMER = (isBaseline: boolean) => rounds(12, (NODES * 48 * 96) / 12, [400], isBaseline)
/** Multi-reference alignment: 3 TB in all, files of 200 and 800 MB: 6,000 files, in rounds of one per CPU. */
const ALIGNMENT = (isBaseline: boolean) => rounds(6, 960, [200, 800], isBaseline)
/** Synthetic: 2,400 files of 800 and 500 MB on each node. */
const SYNTHETIC = (isBaseline: boolean) => rounds(30, (2400 * NODES) / 30, [800, 500], isBaseline)

export async function tiersRows(): Promise<Row[]> {
  const platform = ctePower()
  const rows: Row[] = []
  const has = (name: string): boolean => IO_POLICIES.includes(name)
  const of = (
    write: (build: Build) => void,
    ioPolicy: string,
    flush: 'off' | 'idle' | 'always',
  ): Promise<number> => time(write, { platform, ioPolicy, flush } as SimulateOptions)
  const hmmerBase = await time(HMMER(true), { platform })
  const fcfs = gain(hmmerBase, await of(HMMER(false), 'fcfs', 'off'))
  const flushed = gain(hmmerBase, await of(HMMER(false), 'fcfs', 'idle'))
  rows.push({
    experiment: 'HMMER on three layers, FCFS with flushing',
    paper: '44% of the time',
    ours: `${percent(flushed)} (without ${percent(fcfs)})`,
    better: `always ${percent(gain(hmmerBase, await of(HMMER(false), 'fcfs', 'always')))}`,
    turning: '',
    met: flushed >= 0.44,
  })
  if (!has('priority') || !has('backfill')) {
    const why = 'priority and backfilling are not there yet'
    rows.push(waiting('Multi-reference alignment, backfilling with flushing', '48%', why))
    rows.push(waiting('Synthetic 500/800 MB, priority and backfilling', 'turns with flushing', why))
    return rows
  }
  const alignBase = await time(ALIGNMENT(true), { platform })
  const align = async (ioPolicy: string, flush: 'off' | 'idle' | 'always'): Promise<number> =>
    gain(alignBase, await of(ALIGNMENT(false), ioPolicy, flush))
  const backfill = await align('backfill', 'idle')
  rows.push({
    experiment: 'Multi-reference alignment, backfilling with flushing',
    paper: '48%',
    ours: `${percent(backfill)} (FCFS ${percent(await align('fcfs', 'off'))}, priority ${percent(await align('priority', 'off'))})`,
    better: `always ${percent(await align('backfill', 'always'))}`,
    turning: '',
    met: backfill >= 0.48,
  })
  const synthetic = (ioPolicy: string, flush: 'off' | 'idle' | 'always'): Promise<number> =>
    of(SYNTHETIC(false), ioPolicy, flush)
  const plain = [await synthetic('priority', 'off'), await synthetic('backfill', 'off')] as const
  const withFlush = [await synthetic('priority', 'idle'), await synthetic('backfill', 'idle')] as const
  rows.push({
    experiment: 'Synthetic 500/800 MB, priority and backfilling',
    paper: 'backfilling loses; wins with flushing',
    ours: `${plain.map(s => s.toFixed(0)).join(' and ')} s; ${withFlush.map(s => s.toFixed(0)).join(' and ')} s`,
    better: '',
    turning: `${plain[1] > plain[0] ? 'loses' : 'does not lose'}; ${withFlush[1] < withFlush[0] ? 'wins' : 'does not win'}`,
    met: plain[1] > plain[0] && withFlush[1] < withFlush[0],
  })
  return rows
}
