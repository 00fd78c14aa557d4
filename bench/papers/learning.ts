import type { Learned } from '../../src/core/io/io-core.ts'
import type { LearningWay } from '../../src/core/io/trial-registry.ts'
import type { Bandwidth } from '../../src/core/tasks/demand.ts'
import { MB, outcome } from './build.ts'
import type { Build } from './build.ts'
import { hmmer } from './hmmer.ts'
import { mareNostrum4, varying } from './platforms.ts'
import { parts } from './rows.ts'
import type { Row } from './rows.ts'
import { variants } from './variants.ts'

/**
 * How limits are learned (thesis 4.5.3, figures 4.12 and 4.15 to 4.19, table 4.2), and the times that the thesis gives in seconds.
 * The thesis learns one node at a time. With the computing that is guessed for the other rows all of HMMER takes a third of the
 * published time, and the first epoch alone, of 225 writers on one node, takes all of that: one node at a time nothing is learned. So what is
 * learned is shown for several nodes that try at the same time, and the times are a check of the guess.
 */
interface Lesson {
  seconds: number
  learned: readonly Learned[]
}

async function lesson(
  write: (build: Build) => void,
  learning: LearningWay = 'paper-together',
): Promise<Lesson> {
  let simulation: Build['simulation'] | null = null
  const { tasksEnded } = await outcome(
    build => {
      simulation = build.simulation
      write(build)
    },
    { platform: mareNostrum4(12, 225), jitter: varying(), learning },
  )
  const learned = (simulation as Build['simulation'] | null)?.engine.io.export() ?? []
  return { seconds: tasksEnded, learned }
}

const megabytes = (bandwidth: number): number => Math.round((bandwidth / MB) * 10) / 10

/** The limits that were tried for a kind, in the order of the epochs. */
function epochsOf(learned: readonly Learned[], kind: string): number[] {
  const found = learned.find(one => one.kind === kind)
  return found ? found.trials.map(({ bandwidth }) => megabytes(bandwidth)) : []
}

const limitOf = (learned: readonly Learned[], kind: string): number | null => {
  const found = learned.find(one => one.kind === kind)
  return found ? megabytes(found.bandwidth) : null
}

const TABLE: readonly [kind: string, limit: number][] = [
  ['checkpoint_fastq', 16],
  ['checkpoint_mapped', 8],
  ['checkpoint_merged', 4],
  ['checkpoint_marked', 4],
  ['checkpoint_grouped', 4],
]

export async function learningRows(): Promise<Row[]> {
  const bounded: Bandwidth = { min: 2 * MB, max: 256 * MB, delta: 2 }
  const [free, bound] = [await lesson(hmmer('auto')), await lesson(hmmer(bounded))]
  const single = [await lesson(hmmer('auto'), 'paper'), await lesson(hmmer(bounded), 'paper')] as const
  const pipeline = await lesson(variants('auto'))
  const kind = 'checkpointFrag'
  const [freeLimit, boundLimit] = [limitOf(free.learned, kind), limitOf(bound.learned, kind)]
  const limits = TABLE.map(([name]) => limitOf(pipeline.learned, name))
  const equal = TABLE.filter(([, limit], i) => limits[i] === limit).length
  const seconds = [single[0].seconds, single[1].seconds] as const
  const epochs = single.map(({ learned }) => epochsOf(learned, kind).length)
  return [
    {
      experiment: 'HMMER, figure 4.12: what auto and auto(2,256,2) have learned at the end',
      paper: '8 and 8, after 4 and 8 epochs',
      ours: `${freeLimit} and ${boundLimit}`,
      better: `tried ${epochsOf(free.learned, kind).join(', ')}; ${epochsOf(bound.learned, kind).join(', ')}`,
      turning: '',
      met: freeLimit === 8 && boundLimit === 8,
    },
    {
      experiment: 'HMMER, auto and auto(2,256,2) in seconds, learning one node at a time',
      paper: '932 and 1099 s, auto is better',
      ours: `${seconds.map(one => one.toFixed(0)).join(' and ')} s`,
      better: `compute times are not stated; ${epochs.join(' and ')} limits learned before the end`,
      turning: seconds[0] < seconds[1] ? 'auto is better' : 'auto is not better',
      met: seconds[0] < seconds[1],
      off: `${parts(932, seconds[0])}, ${parts(1099, seconds[1])}`,
    },
    {
      experiment: 'Variants, table 4.2 (figures 4.15 to 4.19): what auto learns for each checkpoint',
      paper: TABLE.map(([name, limit]) => `${name.slice('checkpoint_'.length)} ${limit}`).join(', '),
      ours: limits.join(', '),
      better: '',
      turning: `${equal} of ${TABLE.length} are equal`,
      met: equal === TABLE.length,
    },
  ]
}
