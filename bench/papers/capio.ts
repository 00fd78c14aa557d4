import { demandOf } from '../../src/core/tasks/demand.ts'
import type { Demand } from '../../src/core/tasks/demand.ts'
import { gain, time } from './build.ts'
import type { Build, Use } from './build.ts'
import { galileo100 } from './platforms.ts'
import { isBeyond, percent, points } from './rows.ts'
import type { Row } from './rows.ts'
import { UNSTATED } from './unstated.ts'

/**
 * CAPIO (V.C and V.D): steps on nodes of their own that only read and write. With the file system a step begins when
 * the one before has ended. With streams all begin together: a file can be read when it is closed (`closed`), or as it
 * grows (`growing`), here in parts of 100 MB. A part is a task, and the parts of a step run one after the other.
 */
const GB = 1e9
const PART = 0.1 * GB
type Mode = 'files' | 'closed' | 'growing'

const on = (node: number): Demand => demandOf(1, 0, [`n${node + 1}`])

/** A step that takes the parts one after the other on its node; gives what stands for its end. */
class Step {
  readonly #build: Build
  readonly #node: number
  #last: Use[]

  constructor(build: Build, node: number, after: Use[] = []) {
    this.#build = build
    this.#node = node
    this.#last = after
  }

  do(uses: readonly Use[], seconds = 0): void {
    const end = this.#build.value()
    this.#build.task('part', seconds, [...this.#last, ...uses, [end, 'out']], on(this.#node))
    this.#last = [[end, 'in']]
  }

  get end(): Use[] {
    return this.#last
  }
}

/** `files` files of `bytes` each go from the producers to the consumers, in turn. */
const exchange =
  (producers: number, consumers: number, files: number, bytes: number, mode: Mode) =>
  (build: Build): void => {
    const size = mode === 'growing' ? Math.min(PART, bytes) : bytes
    const folder = mode === 'files' ? '/lustre' : '/memory'
    const from = Array.from({ length: producers }, (_, i) => new Step(build, i))
    const written: [consumer: number, part: Use][] = []
    for (let i = 0; i < files; i++) {
      for (let at = 0; at < bytes; at += size) {
        const part = build.file(folder)
        from[i % producers]?.do([[part, 'out', size]])
        written.push([i % consumers, [part, 'in', size]])
      }
    }
    const before = mode === 'files' ? from.flatMap(({ end }) => end) : []
    const to = Array.from({ length: consumers }, (_, i) => new Step(build, producers + i, before))
    for (const [consumer, part] of written) to[consumer]?.do([part])
  }

/** MapReduce: 72 GB split into a number of files, worked on by 20 instances, 7 GB merged. Input and output on Lustre. */
const mapReduce =
  (files: number, mode: Mode) =>
  (build: Build): void => {
    const folder = mode === 'files' ? '/lustre' : '/memory'
    const [input, output] = [(72 * GB) / files, (7 * GB) / files]
    const split = new Step(build, 0)
    const parts = Array.from({ length: files }, (): Use => {
      const part = build.file(folder)
      split.do([
        [build.input(input), 'in', input],
        [part, 'out', input],
      ])
      return [part, 'in', input]
    })
    const steps = Array.from({ length: 20 }, (_, i) => new Step(build, i, mode === 'files' ? split.end : []))
    const reduced = parts.map((part, i): Use => {
      const file = build.file(folder)
      steps[i % 20]?.do([part, [file, 'out', output]])
      return [file, 'in', output]
    })
    const merge = new Step(build, 0, mode === 'files' ? steps.flatMap(({ end }) => end) : [])
    for (const file of reduced) merge.do([file, [build.file('/lustre'), 'out', output]])
  }

/**
 * 1000 Genomes: each instance makes a file for each of 2,504 people, of 8 KB with 16 instances; all files of a person
 * are merged into one, which two more steps read. Sifting runs beside. With the file system a step begins when those
 * before have ended; with streams it takes the files as they come, here an eighth of the people at a time. Not stated:
 * what a step computes; as elsewhere, 0.8 times as long as it takes to read and write its files.
 */
const genomes =
  (instances: number, mode: Mode) =>
  (build: Build): void => {
    const [GROUPS, PEOPLE] = [8, 2504 / 8]
    const folder = mode === 'files' ? '/lustre' : '/memory'
    const size = 128_000 / instances
    const files = (bytes: number): Use[] =>
      Array.from({ length: PEOPLE }, (): Use => [build.file(folder), 'out', bytes])
    const read = (made: readonly Use[]): Use[] => made.map(([file, , bytes]): Use => [file, 'in', bytes ?? 0])
    const take = (step: Step, uses: readonly Use[]): void =>
      step.do(uses, UNSTATED.computing.value * uses.length * UNSTATED.open.value)
    const after = (...steps: readonly Step[]): Use[] =>
      mode === 'files' ? steps.flatMap(({ end }) => end) : []

    const individuals = Array.from({ length: instances }, (_, i) => new Step(build, i))
    const made = individuals.map(step =>
      Array.from({ length: GROUPS }, () => {
        const own = files(size)
        take(step, own)
        return own
      }),
    )
    const sifting = new Step(build, instances)
    const sifted: Use = [build.file(folder), 'out', 1e6]
    take(sifting, [sifted])
    const merge = new Step(build, instances + 1, after(...individuals))
    const merged = Array.from({ length: GROUPS }, (_, group) => {
      const all = files(128_000)
      take(merge, [...made.flatMap(groups => read(groups[group] ?? [])), ...all])
      return all
    })
    for (const node of [instances + 2, instances + 3]) {
      const last = new Step(build, node, after(merge, sifting))
      for (const all of merged) take(last, [...read([sifted]), ...read(all)])
    }
  }

/** Their rates were chosen among those that meet all of these. */
const FITTED = /1-to-many|MapReduce/

const isReached = (ours: number, theirs: number): boolean => Math.round(ours * 100) >= theirs * 100

export async function capioRows(): Promise<Row[]> {
  const platform = galileo100(21)
  const gains = async (
    write: (mode: Mode) => (build: Build) => void,
  ): Promise<[closed: number, growing: number]> => {
    const base = await time(write('files'), { platform })
    const of = async (mode: Mode): Promise<number> => gain(base, await time(write(mode), { platform }))
    return [await of('closed'), await of('growing')]
  }
  const rows: Row[] = []
  const add = async (
    experiment: string,
    [least, most]: readonly [number, number],
    cases: readonly ((mode: Mode) => (build: Build) => void)[],
  ): Promise<void> => {
    const found: [number, number][] = []
    for (const one of cases) found.push(await gains(one))
    const growing = found.map(([, one]) => one)
    rows.push({
      experiment,
      paper: `${percent(least)} to ${percent(most)}`,
      ours: `growing ${growing.map(percent).join(', ')}`,
      better: `closed ${found.map(([closed]) => percent(closed)).join(', ')}`,
      turning: '',
      // To the percent, as they are published.
      met: isReached(Math.min(...growing), least) && isReached(Math.max(...growing), most),
      isBeyond: isBeyond(most, Math.max(...growing)),
      off: `${points(least, Math.min(...growing))}, ${points(most, Math.max(...growing))}`,
      ...(FITTED.test(experiment) && { fitted: true as const }),
    })
  }
  const sizes: [number, number][] = [
    [100, 0.1],
    [10, 1],
    [1, 10],
  ]
  const counts = [5, 10, 20]
  await add(
    'CAPIO 1-to-1, 100 files, 10 files, 1 file',
    [0.44, 0.66],
    sizes.map(
      ([n, gb]) =>
        (mode: Mode) =>
          exchange(1, 1, n, gb * GB, mode),
    ),
  )
  await add(
    'CAPIO 1-to-many, 5, 10, 20 consumers',
    [0.5, 0.65],
    counts.map(n => (mode: Mode) => exchange(1, n, 100, GB, mode)),
  )
  await add(
    'CAPIO many-to-1, 5, 10, 20 producers',
    [0.5, 0.5],
    counts.map(n => (mode: Mode) => exchange(n, 1, 100, GB, mode)),
  )
  await add(
    'CAPIO MapReduce, 20 and 200 files',
    [0.22, 0.33],
    [20, 200].map(n => (mode: Mode) => mapReduce(n, mode)),
  )
  await add(
    'CAPIO 1000 Genomes, 4, 8, 16 instances',
    [0.1, 0.39],
    [4, 8, 16].map(n => (mode: Mode) => genomes(n, mode)),
  )
  return rows
}
