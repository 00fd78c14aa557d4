import type { Platform } from '../../src/simulate/machine/platform.ts'
import { MB, cpus, time } from './build.ts'
import type { Build, Use } from './build.ts'
import type { Row } from './rows.ts'
import { UNSTATED } from './unstated.ts'

/**
 * Matrix algebra of PyCOMPSs (figures 10, 13 and 18) on MareNostrum III: 16 cores, FDR-10 InfiniBand, blocks of 4,096 by 4,096
 * doubles, four tasks at a time on each node. Stated in GFLOPS of a node: a product of blocks 251, potrf 72. Speed-ups are against
 * one node, so that these count only against each other and against the network. The curves are pictures; what the text says of
 * them is checked.
 */
const BLOCK = 4096
const BYTES = BLOCK * BLOCK * 8
const TASKS_PER_NODE = 4
const GFLOP = BLOCK ** 3 / 1e9
/** Seconds of a task that has a quarter of a node. */
const seconds = (gflop: number, gflops: number): number => (gflop * TASKS_PER_NODE) / gflops
const product = (): number => seconds(2 * GFLOP, 251)
const potrf = (): number => seconds(GFLOP / 3, 72)
/** Not stated: as fast as a product. */
const solve = (): number => seconds(GFLOP, 251)

const NODES = [1, 2, 4, 8, 16, 32, 64]

const mareNostrum3 = (count: number): Platform => ({
  nodes: Array.from({ length: count }, (_, i) => ({
    name: `n${i + 1}`,
    cpus: 16,
    memory: 32e9,
    tags: [],
    link: UNSTATED.blocks.value * MB,
    // Blocks stay in memory.
    storage: [{ name: 'memory', path: '/memory', read: 1e12, write: 1e12, capacity: null }],
  })),
})

/** Blocks by place. Writing one makes a new version of it. */
class Blocks {
  readonly #build: Build
  readonly #now = new Map<string, Use>()

  constructor(build: Build) {
    this.#build = build
  }

  /** Reads the blocks, and one task writes the others. */
  task(name: string, takes: number, reads: readonly string[], writes: readonly string[]): void {
    const read = reads.map(place => this.#now.get(place) ?? this.#made(place))
    const written = writes.map((place): [string, Use] => [place, [this.#build.file(), 'out', BYTES]])
    this.#build.task(name, takes, [...read, ...written.map(([, use]) => use)], cpus(16 / TASKS_PER_NODE))
    for (const [place, [datum]] of written) this.#now.set(place, [datum, 'in', BYTES])
  }

  #made(place: string): Use {
    this.task('create_block', 0.1, [], [place])
    return this.#now.get(place) as Use
  }
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

function multiplication(build: Build): void {
  const blocks = new Blocks(build)
  for (const k of range(0, 16))
    for (const i of range(0, 16))
      for (const j of range(0, 16))
        blocks.task('multiply', product(), [`a${i},${k}`, `b${k},${j}`, `c${i},${j}`], [`c${i},${j}`])
}

function cholesky(build: Build): void {
  const blocks = new Blocks(build)
  for (const k of range(0, 16)) {
    blocks.task('potrf', potrf(), [`${k},${k}`], [`${k},${k}`])
    for (const i of range(k + 1, 16))
      blocks.task('solve_triangular', solve(), [`${k},${k}`, `${i},${k}`], [`${i},${k}`])
    for (const i of range(k + 1, 16))
      for (const j of range(k + 1, i + 1))
        blocks.task('gemm', product(), [`${i},${k}`, `${j},${k}`, `${i},${j}`], [`${i},${j}`])
  }
}

/** Its section 3.3: each pair of blocks is factorized, and its four factors are multiplied into both rows of R and columns of Q. */
function qr(build: Build): void {
  const SIDE = 8
  const blocks = new Blocks(build)
  const two = (one: string, other: string): void =>
    blocks.task('multiply_blocks', 4 * product(), [one, other, 'q'], [one, other])
  for (const k of range(0, SIDE)) {
    blocks.task('qr', UNSTATED.factorizing.value * product(), [`r${k},${k}`], [`r${k},${k}`, 'q'])
    for (const j of range(k + 1, SIDE))
      blocks.task('multiply', product(), [`r${k},${j}`, 'q'], [`r${k},${j}`])
    for (const i of range(0, SIDE)) blocks.task('multiply', product(), [`q${i},${k}`, 'q'], [`q${i},${k}`])
    for (const i of range(k + 1, SIDE)) {
      const taken = [`r${k},${k}`, `r${i},${k}`]
      blocks.task('little_qr', 4 * UNSTATED.factorizing.value * product(), taken, [...taken, 'q'])
      for (const j of range(k + 1, SIDE)) two(`r${k},${j}`, `r${i},${j}`)
      for (const j of range(0, SIDE)) two(`q${j},${k}`, `q${j},${i}`)
    }
  }
}

/** How many times as fast as on one node, by nodes. */
async function speedUps(write: (build: Build) => void, most: number): Promise<Map<number, number>> {
  const found = new Map<number, number>()
  let alone = 0
  for (const count of NODES.filter(nodes => nodes <= most)) {
    const took = await time(write, { platform: mareNostrum3(count) })
    alone ||= took
    found.set(count, alone / took)
  }
  return found
}

const tell = (found: ReadonlyMap<number, number>): string =>
  [...found].map(([nodes, times]) => `${nodes}: ${times.toPrecision(2)}`).join(', ')

const efficiency = (found: ReadonlyMap<number, number>, nodes: number): number =>
  (found.get(nodes) ?? 0) / nodes

/** "Ideal" and "very good" are read as this share of the ideal speed-up; "lower" as less. */
const GOOD = 0.85

export async function algebraRows(): Promise<Row[]> {
  const row = (
    experiment: string,
    paper: string,
    found: ReadonlyMap<number, number>,
    good: number,
    met: boolean,
  ): Row => ({
    experiment,
    paper,
    ours: `times as fast as one node: ${tell(found)}`,
    better: '',
    turning: `${Math.round(efficiency(found, good) * 100)}% of ideal on ${good} nodes`,
    met: met && efficiency(found, good) >= GOOD,
  })
  const products = await speedUps(multiplication, 64)
  const factors = await speedUps(cholesky, 32)
  const orthogonal = await speedUps(qr, 32)
  const more = (found: ReadonlyMap<number, number>, from: number, to: number): number =>
    (found.get(to) ?? 0) / (found.get(from) ?? 1)
  return [
    row(
      'PyCOMPSs, figure 10: matrix multiplication, 1 to 64 nodes',
      'very good until 16 nodes, then lower, but goes on',
      products,
      16,
      efficiency(products, 64) < efficiency(products, 16) && more(products, 16, 64) > 1,
    ),
    row(
      'PyCOMPSs, figure 13: Cholesky, 1 to 32 nodes',
      'ideal up to 4 nodes; its graph is filled with 8',
      factors,
      4,
      efficiency(factors, 16) < GOOD && more(factors, 16, 32) < 1.1,
    ),
    row(
      'PyCOMPSs, figure 18: QR, 1 to 32 nodes',
      'excellent up to 4 nodes, not well beyond',
      orthogonal,
      4,
      efficiency(orthogonal, 8) < GOOD && more(orthogonal, 16, 32) < 1.1,
    ),
  ]
}
