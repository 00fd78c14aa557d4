import { demandOf } from '../../src/core/tasks/demand.ts'
import type { Demand } from '../../src/core/tasks/demand.ts'
import type { NodeModel, Platform } from '../../src/simulate/machine/platform.ts'
import { Blocks, GFLOP, factorize, multiply, range } from './algebra.ts'
import { MB } from './build.ts'
import type { Build } from './build.ts'
import { parts, percent } from './rows.ts'
import type { Row } from './rows.ts'
import { atOnce, most, over, timelineOf } from './timeline.ts'
import type { Span, Timeline } from './timeline.ts'
import { UNSTATED } from './unstated.ts'

/**
 * Matrix algebra of PyCOMPSs on nodes of two kinds (figures 11, 12, 15, 16 and 19): the SSF cluster, where a Xeon node runs eight
 * tasks at a time and a KNL node four. Blocks of 4,096 by 4,096. Stated is one speed: 218 GFLOPS, the most that one Xeon node
 * reaches, which all tasks of a node share here; 41 for one block alone. How fast KNL nodes are is not stated.
 */
const XEON = { tasks: 8, gflops: 218, alone: 41 }
const KNL = { tasks: 4 }
/** Seconds on a Xeon node whose other places are taken. */
const seconds = (gflop: number): number => (gflop * XEON.tasks) / XEON.gflops

function cluster(xeon: number, knl: number): Platform {
  const node = (i: number, isXeon: boolean): NodeModel => ({
    name: `${isXeon ? 'xeon' : 'knl'}${i}`,
    cpus: isXeon ? XEON.tasks : KNL.tasks,
    speed: isXeon ? 1 : (XEON.tasks / KNL.tasks) * UNSTATED.knl.value,
    memory: 110e9,
    tags: [isXeon ? 'xeon' : 'knl'],
    link: UNSTATED.blocks.value * MB,
    storage: [{ name: 'memory', path: '/memory', read: 1e12, write: 1e12, capacity: null }],
  })
  return {
    nodes: [...range(0, xeon).map(i => node(i, true)), ...range(0, knl).map(i => node(i, false))],
  }
}

const anywhere = (): Demand => demandOf(1, 0, [])
/** Only products run on both kinds of nodes. */
const whereItCan = (name: string): Demand => (name === 'gemm' ? anywhere() : demandOf(1, 0, ['xeon']))

const products =
  (side: number) =>
  (build: Build): void =>
    multiply(new Blocks(build, anywhere), side, seconds(2 * GFLOP))

const cholesky =
  (side: number) =>
  (build: Build): void =>
    factorize(new Blocks(build, whereItCan), side, {
      potrf: seconds(GFLOP / 3),
      solve: seconds(GFLOP),
      gemm: seconds(2 * GFLOP),
    })

/** Its figure 8: triangles are inverted again for each block, and `multiply` takes two or three matrices. */
const lu =
  (side: number) =>
  (build: Build): void => {
    const blocks = new Blocks(build, anywhere)
    const [product, inverse] = [seconds(2 * GFLOP), seconds(GFLOP / 3)]
    const factorized = (i: number): void =>
      blocks.task(
        'custom_lu',
        seconds((2 * GFLOP) / 3),
        [`a${i},${i}`],
        [`p${i}`, `l${i},${i}`, `u${i},${i}`],
      )
    const inverted = (of: string, as: string): void => blocks.task('invert_triangular', inverse, [of], [as])
    const row = (i: number): void => {
      for (const j of range(i + 1, side)) {
        inverted(`l${i},${i}`, `t${i},${j}`)
        blocks.task('multiply', 2 * product, [`t${i},${j}`, `p${i}`, `a${i},${j}`], [`u${i},${j}`])
      }
    }
    factorized(0)
    row(0)
    for (const i of range(1, side)) {
      for (const j of range(i, side)) {
        for (const k of range(i, side)) {
          const [mat, half] = [`m${i},${j},${k}`, `h${i},${j},${k}`]
          inverted(`u${i - 1},${i - 1}`, mat)
          blocks.task('multiply', product, [`a${j},${i - 1}`, mat], [half])
          blocks.task('dgemm', product, [`a${j},${k}`, half, `u${i - 1},${k}`], [`a${j},${k}`])
        }
      }
      factorized(i)
      for (const j of range(0, i)) {
        inverted(`u${j},${j}`, `v${i},${j}`)
        blocks.task('multiply', 2 * product, [`p${i}`, `a${i},${j}`, `v${i},${j}`], [`l${i},${j}`])
      }
      row(i)
    }
  }

const endOf = ({ outcome }: Timeline): number => outcome.tasksEnded
const onNode = (spans: readonly Span[], isOne: (node: number) => boolean): Span[] =>
  spans.filter(({ node }) => isOne(node))

/** The most tasks that one of these nodes had at a time. */
const fullest = (spans: readonly Span[], nodes: readonly number[]): number =>
  Math.max(...nodes.map(one => most(atOnce(onNode(spans, node => node === one)))))

async function productRows(): Promise<Row[]> {
  const SIDE = 32
  const pairs: Timeline[] = []
  for (const count of [1, 2, 4, 8]) {
    pairs.push(await timelineOf(products(SIDE), { platform: cluster(count, count) }))
  }
  const [pair] = pairs as [Timeline]
  const tasks = pair.spans.filter(({ kind }) => kind === 'multiply')
  const free = over(atOnce(tasks, 'ready', 'to'), count => count) / endOf(pair)
  const full = [fullest(pair.spans, [0]), fullest(pair.spans, [1])]
  const grows = pairs.map(one => endOf(pair) / endOf(one))
  return [
    {
      experiment: 'PyCOMPSs, figure 11: a product of 131K by 131K on a Xeon and a KNL node',
      paper: '32768 tasks, 1024 of them free on average; 8 and 4 at a time',
      ours: `${tasks.length}, ${free.toFixed(0)}; ${full.join(' and ')}`,
      better: '',
      turning: '',
      met: tasks.length === 32_768 && Math.abs(free / 1024 - 1) <= 0.1 && full.join() === '8,4',
      off: parts(1024, free),
    },
    {
      experiment: 'PyCOMPSs, figure 12: the same on 2, 4, 8, 16 nodes',
      paper: 'locality degrades faster than FIFOData, for the time that scheduling takes',
      ours: `by locality ${grows.map(one => one.toPrecision(2)).join(', ')} times as fast as 2 nodes`,
      better: 'decisions take no virtual time',
      turning: '',
      met: false,
    },
  ]
}

async function choleskyRows(): Promise<Row[]> {
  const SIDE = 32
  const found: Timeline[] = []
  for (const count of [1, 2, 4, 8]) {
    found.push(await timelineOf(cholesky(SIDE), { platform: cluster(count, count) }))
  }
  const grows = found.map(one => endOf(found[0] as Timeline) / endOf(one))
  const { spans } = found[2] as Timeline
  const kinds = new Set(onNode(spans, node => node >= 4).map(({ kind }) => kind))
  const full = [fullest(spans, range(0, 4)), fullest(spans, range(4, 8))]
  return [
    {
      experiment: 'PyCOMPSs, figure 15: Cholesky of 130K by 130K, 2, 4, 8, 16 nodes of two kinds',
      paper: 'the text gives no number',
      ours: `${grows.map(one => one.toPrecision(2)).join(', ')} times as fast as 2 nodes`,
      better: '',
      turning: '',
      met: null,
    },
    {
      experiment: 'PyCOMPSs, figure 16: the same on 4 Xeon and 4 KNL nodes, what runs where',
      paper: 'gemm alone on KNL nodes; 8 and 4 at a time',
      ours: `${[...kinds].join(', ')}; ${full.join(' and ')}`,
      better: '',
      turning: '',
      met: [...kinds].join() === 'gemm' && full.join() === '8,4',
    },
  ]
}

async function luRow(): Promise<Row> {
  const SIDE = 20
  const gflop = (2 / 3) * SIDE ** 3 * GFLOP
  const reached: number[] = []
  for (const count of [1, 2, 4, 8]) {
    reached.push(gflop / endOf(await timelineOf(lu(SIDE), { platform: cluster(count, 0) })))
  }
  const [one = 0] = reached
  return {
    experiment: 'PyCOMPSs, figure 19: GFLOPS of LU, 82K by 82K, on 1, 2, 4, 8 Xeon nodes',
    paper: 'more than 41, which one block alone reaches: several tasks use all of a node',
    ours: reached.map(value => value.toFixed(0)).join(', '),
    better: `${percent(one / XEON.gflops)} of what one large matrix reaches: products are made again and again`,
    turning: '',
    met: one > XEON.alone,
  }
}

export const heterogeneousRows = async (): Promise<Row[]> => [
  ...(await productRows()),
  ...(await choleskyRows()),
  await luRow(),
]
