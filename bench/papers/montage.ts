import type { Datum } from '../../src/core/data/datum.ts'
import type { Policy } from '../../src/core/schedule/policy.ts'
import type { PartitionWay } from '../../src/node/processes/gpmetis.ts'
import type { SimulatedOutcome } from '../../src/simulate/outcome.ts'
import type { SimulateOptions } from '../../src/simulate/simulate.ts'
import { fifo, lifo, lifoHrf, rank } from '../../src/core/schedule/policy.ts'
import { MB, gain, outcome } from './build.ts'
import type { Build, Use } from './build.ts'
import { varying, tohoku } from './platforms.ts'
import { parts, percent, points } from './rows.ts'
import type { Row } from './rows.ts'
import { timelineOf } from './timeline.ts'
import type { Timeline } from './timeline.ts'
import { UNSTATED } from './unstated.ts'

/**
 * Montage (Pwrake IV.C): 421 images of 2.52 MB, 2,707 tasks, 63.5 GB of intermediate files, 20 GB of them from
 * mProjectPP; 1 to 12 nodes of 8 cores. Pwrake assigns tasks to nodes by a partition of the graph before it runs, and idle
 * nodes steal: so does `partition` here, the greedy one, which is the same on all machines. Without it each task goes where its
 * inputs are. Tasks that run alone are left out, as in the paper.
 * Not stated: seconds that tasks compute. At 96 cores projecting and fitting differences, side by side, take the first
 * 60 s of the paper's run (figure 15), the rest takes about as long, and cores are busy for 87% of all.
 */
const IMAGES = 421
const COLUMNS = 21
const TILES = 23
const PROJECTED = (20_000 / IMAGES) * MB
const DIFFERENCE = 25 * MB

/** Pairs of images that overlap: neighbours in rows and columns, and some across; 920, from tasks and files in table III. */
function overlaps(): [number, number][] {
  const pairs: [number, number][] = []
  for (let i = 0; i < IMAGES; i++) {
    const isLast = i % COLUMNS === COLUMNS - 1
    if (!isLast && i + 1 < IMAGES) pairs.push([i, i + 1])
    if (i + COLUMNS < IMAGES) pairs.push([i, i + COLUMNS])
    if (i % 3 === 0 && !isLast && i + COLUMNS + 1 < IMAGES) pairs.push([i, i + COLUMNS + 1])
  }
  return pairs
}

const montage =
  (nodes: number) =>
  (build: Build): void => {
    const projected = Array.from({ length: IMAGES }, (_, i): Datum => {
      const image = build.file()
      const raw = build.input(2.52 * MB, Math.floor((i * nodes) / IMAGES))
      const uses: Use[] = [
        [raw, 'in', 2.52 * MB],
        [image, 'out', PROJECTED],
      ]
      build.task('mProjectPP', UNSTATED.project.value, uses)
      return image
    })
    const fits = overlaps().map(([a, b]): Use => {
      const difference = build.file()
      const fit = build.file()
      const inputs = [a, b].map((i): Use => [projected[i] as Datum, 'in', PROJECTED])
      build.task('mDiff', UNSTATED.diff.value, [...inputs, [difference, 'out', DIFFERENCE]])
      const uses: Use[] = [
        [difference, 'in', DIFFERENCE],
        [fit, 'out'],
      ]
      build.task('mFitplane', UNSTATED.diff.value, uses)
      return [fit, 'in']
    })
    const model = build.value()
    build.task('mBgModel', 0, [...fits, [model, 'out']])
    const corrected = projected.map((image): Use => {
      const better = build.file()
      const uses: Use[] = [
        [image, 'in', PROJECTED],
        [model, 'in'],
        [better, 'out', PROJECTED],
      ]
      build.task('mBackground', UNSTATED.background.value, uses)
      return [better, 'in', PROJECTED]
    })
    for (let tile = 0; tile < TILES; tile++) {
      const first = Math.floor((tile * IMAGES) / TILES)
      const mine = corrected.slice(first, Math.floor(((tile + 1) * IMAGES) / TILES))
      build.task('mAdd', UNSTATED.add.value, [...mine, [build.file(), 'out', PROJECTED]])
    }
  }

const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length

const POLICIES = { fifo, lifo, 'lifo+hrf': lifoHrf, rank }

const optionsOf = (nodes: number, policy: Policy, partition?: PartitionWay): SimulateOptions => ({
  platform: tohoku(nodes),
  policy,
  jitter: varying(),
  ...(partition && { partition }),
})

const run = (nodes: number, policy: Policy, partition?: PartitionWay): Promise<SimulatedOutcome> =>
  outcome(montage(nodes), optionsOf(nodes, policy, partition))

/** When each task ran on 12 nodes. */
export const traced = (policy: Policy, partition?: PartitionWay): Promise<Timeline> =>
  timelineOf(montage(12), optionsOf(12, policy, partition))

export async function montageRows(): Promise<Row[]> {
  const counts = [1, 2, 3, 4, 6, 8, 10, 12]
  const times: Record<string, number[]> = {}
  for (const [name, policy] of Object.entries(POLICIES)) {
    times[name] = []
    for (const nodes of counts) {
      times[name].push((await run(nodes, policy, 'greedy')).tasksEnded)
    }
  }
  const of = (name: string, nodes: number): number => times[name]?.[counts.indexOf(nodes)] as number
  const speedups = [1, 2, 3].map(nodes => of('fifo', nodes) / of('lifo+hrf', nodes))
  const lost = counts.filter(nodes => of('lifo', nodes) > of('fifo', nodes)).map(nodes => nodes * 8)
  const isBest = counts.filter(
    nodes => of('lifo+hrf', nodes) <= Math.min(...Object.keys(times).map(one => of(one, nodes))),
  )
  const atEnd = gain(of('lifo', 12), of('lifo+hrf', 12))
  const near: string[] = []
  for (const policy of [fifo, lifo, lifoHrf]) {
    near.push((await run(12, policy)).tasksEnded.toFixed(0))
  }
  const [apart, divided] = [await run(4, fifo), await run(4, fifo, 'greedy')]
  return [
    {
      experiment: 'Montage on 4 nodes, partition against where inputs are, FIFO',
      paper: 'better locality',
      ours: `${(divided.between / 1e9).toFixed(1)} GB between nodes instead of ${(apart.between / 1e9).toFixed(1)}`,
      better: '',
      turning: `${divided.tasksEnded.toFixed(0)} s instead of ${apart.tasksEnded.toFixed(0)}`,
      met: divided.between <= apart.between / 2 && divided.tasksEnded < apart.tasksEnded,
    },
    {
      experiment: 'Montage, LIFO+HRF against FIFO at 8, 16 and 24 cores',
      paper: 'about 1.9 times as fast',
      ours: `${speedups.map(one => one.toFixed(2)).join(', ')}; mean ${mean(speedups).toFixed(2)}`,
      better: `rank ${[1, 2, 3].map(nodes => (of('fifo', nodes) / of('rank', nodes)).toFixed(2)).join(', ')}`,
      turning: `LIFO+HRF best at ${isBest.length} of ${counts.length} sizes`,
      met: mean(speedups) >= 1.9,
      off: parts(1.9, mean(speedups)),
    },
    {
      experiment: 'Montage, LIFO against FIFO at 8 to 96 cores',
      paper: 'wins up to 32, loses from 48 on',
      ours: counts.map(nodes => percent(gain(of('fifo', nodes), of('lifo', nodes)))).join(', '),
      better: counts.map(nodes => percent(gain(of('fifo', nodes), of('lifo+hrf', nodes)))).join(', '),
      turning: `loses at ${lost.join(', ') || 'none'} cores`,
      met: lost.length > 0 && lost[0] === 48 && lost.length === counts.filter(nodes => nodes >= 6).length,
    },
    {
      experiment: 'Montage, LIFO+HRF against LIFO at 96 cores',
      paper: '12% less time',
      ours: percent(atEnd),
      better: `rank ${percent(gain(of('lifo', 12), of('rank', 12)))}; nodes not assigned ${near.join(', ')} s`,
      turning: `${of('fifo', 12).toFixed(0)}, ${of('lifo', 12).toFixed(0)}, ${of('lifo+hrf', 12).toFixed(0)}, ${of('rank', 12).toFixed(0)} s (paper up to 130)`,
      met: atEnd >= 0.12,
      off: points(0.12, atEnd),
    },
  ]
}
