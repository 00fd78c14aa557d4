import type { Platform } from '../../src/simulate/machine/platform.ts'
import { cpus, gain, time } from './build.ts'
import type { Build } from './build.ts'
import { archivePlatform, archives, decomposition, values } from './eager.ts'
import { mareNostrum4 } from './platforms.ts'
import { percent } from './rows.ts'
import type { Row } from './rows.ts'
import { ofKind, timelineOf } from './timeline.ts'
import { UNSTATED } from './unstated.ts'

/**
 * Eager release: the overhead of large values (thesis 7.6.2.2, figures 7.9 and 7.10), a trace (7.15) and scalability (7.16 and
 * 7.21). All are pictures; what the text says of them is checked. The time that the runtime of COMPSs takes is not modelled.
 */
type Experiment = (isEager: boolean) => (build: Build) => void

/** One task makes 200 lists, of `millions` million numbers each; each has a successor that computes nothing. */
const lists =
  (millions: number): Experiment =>
  isEager =>
  build => {
    const LISTS = 200
    const made = values(build, LISTS)
    build.task('generate', LISTS * UNSTATED.pickle.value * millions, made, cpus(1), isEager)
    for (const [one] of made) build.task('consume', 0, [[one, 'in']])
  }

interface Both {
  lazy: number
  eager: number
}

const both = async (experiment: Experiment, platform: Platform): Promise<Both> => ({
  lazy: await time(experiment(false), { platform }),
  eager: await time(experiment(true), { platform }),
})

const list = (found: readonly number[]): string => found.map(percent).join(', ')
const seconds = (found: readonly number[]): string => found.map(one => one.toPrecision(3)).join(', ')
const isGrowing = (found: readonly number[]): boolean =>
  found.every((one, i) => i === 0 || one > (found[i - 1] as number))

async function sizeRows(): Promise<Row[]> {
  const SIZES = [1, 2, 3, 4, 5]
  const platform = mareNostrum4(5)
  const gains: number[] = []
  const first: Both[] = []
  for (const millions of SIZES) {
    const { lazy, eager } = await both(lists(millions), platform)
    gains.push(gain(lazy, eager))
    const until = async (isEager: boolean): Promise<number> => {
      const { spans } = await timelineOf(lists(millions)(isEager), { platform })
      return Math.min(...ofKind(spans, 'consume').map(({ ready }) => ready))
    }
    first.push({ lazy: await until(false), eager: await until(true) })
  }
  const spread = Math.max(...gains) - Math.min(...gains)
  const [lazy, eager] = [first.map(one => one.lazy), first.map(one => one.eager)]
  return [
    {
      experiment: 'Eager release, figure 7.9: 200 lists of 1 to 5 million numbers',
      paper: 'no significant difference; the same gain for all sizes',
      ours: `gains ${list(gains)}`,
      better: '',
      turning: '',
      met: Math.max(...gains.map(Math.abs)) < 0.05 && spread < 0.01,
    },
    {
      experiment: 'Eager release, figure 7.10: seconds of serialization before the first successor',
      paper: 'grows with the size; of all values, or of one',
      ours: `at the end ${seconds(lazy)}; eager ${seconds(eager)}`,
      better: '',
      turning: '',
      met: isGrowing(lazy) && isGrowing(eager) && lazy.every((one, i) => one > (eager[i] as number)),
    },
  ]
}

/** Figure 7.15. */
async function traceRow(): Promise<Row> {
  const platform = archivePlatform()
  const shares: number[] = []
  for (const isEager of [false, true]) {
    const { spans } = await timelineOf(archives(6000, isEager), { platform })
    const read = Math.max(...ofKind(spans, 'read_records').map(({ to }) => to))
    const counts = ofKind(spans, 'calculate_tf')
    shares.push(counts.filter(({ from }) => from < read).length / counts.length)
  }
  const [lazy = 0, eager = 0] = shares
  return {
    experiment: 'Web archives, figure 7.15: calculate_tf tasks that start before all is read',
    paper: 'none; with eager release small and medium records',
    ours: `${percent(lazy)}; ${percent(eager)}`,
    better: '',
    turning: '',
    met: lazy === 0 && eager > 0,
  }
}

/** How a run goes with the number of nodes: strong and weak scaling, each of lazy and of eager release. */
async function scaling(
  counts: readonly number[],
  of: (count: number) => { experiment: Experiment; platform: Platform },
): Promise<Both[]> {
  const found: Both[] = []
  for (const count of counts) {
    const { experiment, platform } = of(count)
    found.push(await both(experiment, platform))
  }
  return found
}

const gainsOf = (found: readonly Both[]): number[] => found.map(({ lazy, eager }) => gain(lazy, eager))
/** Times against those on the fewest nodes. */
const relative = (found: readonly Both[], which: keyof Both): number[] =>
  found.map(one => (found[0] as Both)[which] / one[which])
const times = (found: readonly number[]): string => found.map(one => one.toPrecision(2)).join(', ')

async function archiveRows(): Promise<Row[]> {
  const nodes = [1, 2, 4, 8]
  const RECORDS = 24_000
  const strong = await scaling(nodes, count => ({
    experiment: isEager => archives(RECORDS, isEager, 240),
    platform: archivePlatform(5, count),
  }))
  const weak = await scaling([1, 2, 4, 5], count => ({
    experiment: isEager => archives(4800 * count, isEager, 48 * count),
    platform: archivePlatform(count, count),
  }))
  const [lazy, eager] = [relative(strong, 'lazy'), relative(strong, 'eager')]
  return [
    {
      experiment: 'Web archives, figure 7.16a: strong scalability, 1, 2, 4, 8 compute nodes',
      paper: 'better with eager release',
      ours: `times as fast as one node: lazy ${times(lazy)}; eager ${times(eager)}`,
      better: '',
      turning: `gains ${list(gainsOf(strong))}`,
      met: eager.every((one, i) => one >= (lazy[i] as number)) && gainsOf(strong).every(one => one > 0),
    },
    {
      experiment:
        'Web archives, figure 7.16b: weak scalability, 1, 2, 4, 5 nodes for each of reading and computing',
      paper: 'similar trend, better with eager release',
      ours: `of one node: lazy ${list(relative(weak, 'lazy'))}; eager ${list(relative(weak, 'eager'))}`,
      better: '',
      turning: `gains ${list(gainsOf(weak))}`,
      met: gainsOf(weak).every(one => one > 0),
    },
  ]
}

async function domainRows(): Promise<Row[]> {
  const nodes = [1, 2, 4, 8, 12]
  const strong = await scaling(nodes, count => ({
    experiment: isEager => decomposition(800, isEager, 10),
    platform: mareNostrum4(count),
  }))
  const weak = await scaling(nodes, count => ({
    experiment: isEager => decomposition(800, isEager, count),
    platform: mareNostrum4(count),
  }))
  const [lazy, eager] = [relative(weak, 'lazy'), relative(weak, 'eager')]
  const falls = (found: readonly number[]): number => 1 - (found.at(-1) ?? 0)
  const gains = gainsOf(strong)
  return [
    {
      experiment: 'Domain decomposition, figure 7.21a: strong scalability, 1, 2, 4, 8, 12 nodes',
      paper: 'close on few nodes; the gain grows with the nodes',
      ours: `gains ${list(gains)}`,
      better: '',
      turning: '',
      met: isGrowing(gains) && (gains[0] as number) < 0.1,
    },
    {
      experiment: 'Domain decomposition, figure 7.21b: weak scalability, 1, 2, 4, 8, 12 nodes',
      paper: 'steadier with eager release',
      ours: `of one node: lazy ${list(lazy)}; eager ${list(eager)}`,
      better: '',
      turning: `gains ${list(gainsOf(weak))}`,
      met: falls(eager) < falls(lazy) - 0.01,
    },
  ]
}

export const eagerFigures = async (): Promise<Row[]> => [
  ...(await sizeRows()),
  await traceRow(),
  ...(await archiveRows()),
  ...(await domainRows()),
]
