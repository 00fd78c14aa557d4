import { demandOf } from '../../src/core/tasks/demand.ts'
import { Implementation } from '../../src/core/tasks/task.ts'
import type { Kind } from '../../src/core/tasks/task.ts'
import type { Work } from '../../src/simulate/execution.ts'
import { randomFrom } from '../../src/simulate/machine/random.ts'
import { time } from './build.ts'
import type { Build, Use } from './build.ts'
import { mareNostrum4 } from './platforms.ts'
import { lowest, parts } from './rows.ts'
import type { Row } from './rows.ts'
import { UNSTATED } from './unstated.ts'

/**
 * Native MPI tasks (thesis 6.5.2) on MareNostrum 4: ranks of one task against tasks at the same time. The curves of single
 * tasks are stated at 8 ranks (figures 6.10 and 6.12) and not beside them.
 */
const RANKS = [1, 2, 4, 8, 16, 48] as const
type Curve = Readonly<Record<number, number>>

/** GPFS has less and less for further writers: 3 times at 8. */
const writing = (): Curve => ({ 2: 1.3, 4: 2.05, 8: 3.15, 16: 3.4, 48: 3.5 })
/** More than 7 times at 8: the words of a record are counted in equal parts. */
const counting = (): Curve => ({ 2: 1.95, 4: 3.8, 8: 7.2, 16: 11, 48: 16 })

/** A kind with this number of ranks, or with several numbers to choose from. */
function wideKind(build: Build, name: string, ranks: readonly number[]): Kind {
  const kind = build.simulation.kind(name, 'mpi')
  kind.isMoldable = true
  for (const count of ranks.slice(kind.implementations.length)) {
    kind.implementations.push(new Implementation(`${name}-${count}`, wide(count)))
  }
  return kind
}

const wide = (ranks: number): ReturnType<typeof demandOf> =>
  demandOf(ranks, 0, [], false, null, 0, { unit: 1, perNode: Number.MAX_SAFE_INTEGER })

function wideTask(
  build: Build,
  name: string,
  seconds: number,
  uses: readonly Use[],
  ranks: readonly number[],
  curve: Curve,
): void {
  const work: Work = { compute: seconds * 1000, bytes: null, speedUp: cpus => curve[cpus] ?? 1 }
  build.simulation.submit(
    { kind: wideKind(build, name, ranks), demand: wide(ranks[0] ?? 1) },
    uses.map(([datum, mode]) => ({ datum, mode })),
    work,
  )
}

/**
 * 6.5.2.2: 192 blocks are made, 512 products added up and each written: eight by eight blocks, three matrices. All products of
 * a block go to one file, so that one is written after the other.
 */
const matrices =
  (ranks: readonly number[]) =>
  (build: Build): void => {
    const [SIDE, WRITING] = [8, 100]
    const multiplying = WRITING * UNSTATED.multiplying.value
    const block = (): Use => {
      const made = build.value()
      build.task('create_block', multiplying / 10, [[made, 'out']])
      return [made, 'in']
    }
    const [a, b] = [0, 1].map(() => Array.from({ length: SIDE * SIDE }, block)) as [Use[], Use[]]
    const sums = Array.from({ length: SIDE * SIDE }, block)
    const written: Use[][] = sums.map(() => [])
    for (let k = 0; k < SIDE; k++) {
      for (let cell = 0; cell < SIDE * SIDE; cell++) {
        const [next, file] = [build.value(), build.value()]
        const factors = [a[Math.floor(cell / SIDE) * SIDE + k] as Use, b[k * SIDE + (cell % SIDE)] as Use]
        build.task('multiply', multiplying, [...factors, sums[cell] as Use, [next, 'out']])
        sums[cell] = [next, 'in']
        const before = written[cell] as Use[]
        wideTask(build, 'write_result', WRITING, [[next, 'in'], ...before, [file, 'out']], ranks, writing())
        written[cell] = [[file, 'in']]
      }
    }
  }

/** 6.5.2.3: 720 records are read and looked at. Few are large: of the shares of all, the largest is stated by no figure. */
const archives =
  (ranks: readonly number[]) =>
  (build: Build): void => {
    const [RECORDS, MEAN] = [720, 100]
    const random = randomFrom(7)
    const sizes = Array.from({ length: RECORDS }, () => random() ** -UNSTATED.tail.value)
    const sum = sizes.reduce((all, size) => all + size, 0)
    for (const size of sizes) {
      const seconds = (size / sum) * RECORDS * MEAN
      const [record, counted] = [build.value(), build.value()]
      build.task('read_record', seconds / 50, [[record, 'out']])
      wideTask(
        build,
        'calculate_tf_idf',
        seconds,
        [
          [record, 'in'],
          [counted, 'out'],
        ],
        ranks,
        counting(),
      )
    }
  }

type Experiment = (ranks: readonly number[]) => (build: Build) => void

const curveOn = async (experiment: Experiment, nodes: number): Promise<Map<number, number>> => {
  const found = new Map<number, number>()
  for (const ranks of RANKS)
    found.set(ranks, await time(experiment([ranks]), { platform: mareNostrum4(nodes) }))
  return found
}

const PUBLISHED = [
  {
    name: 'Matrix multiplication, native MPI writes',
    experiment: matrices,
    total: 1.9,
    turns: [4, 8, 8],
  },
  {
    name: 'Web archives, native MPI',
    experiment: archives,
    total: 3,
    turns: [8, 8, 16],
  },
] as const

export async function mpiRows(): Promise<Row[]> {
  const rows: Row[] = []
  for (const { name, experiment, total, turns } of PUBLISHED) {
    const curves = await Promise.all([4, 8, 12].map(nodes => curveOn(experiment, nodes)))
    const on8 = curves[1] as Map<number, number>
    const speedUp = (on8.get(1) as number) / (on8.get(8) as number)
    const chosen = await time(experiment(RANKS), { platform: mareNostrum4(8) })
    rows.push({
      experiment: `${name}, 8 ranks on 8 nodes`,
      paper: `${total}x`,
      ours: `${speedUp.toFixed(2)}x`,
      better: `ranks chosen by the runtime: ${((on8.get(1) as number) / chosen).toFixed(2)}x`,
      turning: '',
      met: speedUp >= total,
      off: parts(total, speedUp),
      isBeyond: speedUp > total * 1.2,
      fitted: true,
    })
    const found = curves.map(lowest)
    rows.push({
      experiment: `${name}, best number of ranks on 4, 8 and 12 nodes`,
      paper: turns.join(', '),
      ours: found.join(', '),
      better: '',
      turning: found.every((ranks, i) => ranks === turns[i]) ? 'same' : 'differs',
      met: found.every((ranks, i) => ranks === turns[i]),
      fitted: true,
    })
  }
  return rows
}
