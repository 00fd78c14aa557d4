import { Edges } from '../../general/partition/graph.ts'
import type { Graph } from '../../general/partition/graph.ts'

/** Levels that are spread evenly, each by itself; of more, neighbours are taken together. */
const MOST_BANDS = 16

/**
 * Tasks and what passes between them, to be divided among nodes: few bytes from node to node, and of each level of the graph
 * as much for each node. A level is the distance from the beginning: what is in one level can run at the same time.
 */
export class TaskGraph {
  readonly #edges = new Edges()
  readonly #levels: number[] = []
  readonly #weights: number[] = []
  /** By datum, whatever that is called: the task that makes it, and the last one that reads it where none makes it. */
  readonly #makers = new Map<unknown, number>()
  readonly #readers = new Map<unknown, number>()

  get size(): number {
    return this.#levels.length
  }

  /** Each task comes after those that make what it reads. Returns its number. */
  add(
    cpus: number,
    reads: Iterable<readonly [datum: unknown, bytes: number]>,
    writes: Iterable<unknown>,
  ): number {
    const own = this.#levels.length
    let level = 0
    for (const [datum, bytes] of reads) {
      const maker = this.#makers.get(datum)
      // What has no size, or an unknown one, is better near than far.
      const bond = bytes + 1
      if (maker !== undefined) {
        level = Math.max(level, (this.#levels[maker] as number) + 1)
        this.#edges.add(maker, own, bond)
      } else {
        const before = this.#readers.get(datum)
        if (before !== undefined) this.#edges.add(before, own, bond)
        this.#readers.set(datum, own)
      }
    }
    for (const datum of writes) this.#makers.set(datum, own)
    this.#levels.push(level)
    this.#weights.push(Math.max(cpus, 0.1))
    return own
  }

  graph(parts: number): Graph {
    const bandOf = bandsOf(this.#levels, parts)
    const bands = (bandOf.at(-1) ?? 0) + 1
    const weights = new Float64Array(this.size * bands)
    for (const [i, level] of this.#levels.entries()) {
      weights[i * bands + (bandOf[level] as number)] = this.#weights[i] as number
    }
    return this.#edges.graph(this.size, bands, weights)
  }
}

/** Levels with fewer tasks than parts cannot be spread by themselves: they count with the next ones. */
function bandsOf(levels: readonly number[], parts: number): number[] {
  const counts: number[] = []
  for (const level of levels) counts[level] = (counts[level] ?? 0) + 1
  const fine = grouped(counts, parts)
  return (fine.at(-1) ?? 0) < MOST_BANDS ? fine : grouped(counts, Math.ceil(levels.length / MOST_BANDS))
}

/** The band of each level: neighbours together until a band has at least this many tasks. */
function grouped(counts: readonly number[], least: number): number[] {
  const bandOf: number[] = []
  let [band, inBand] = [0, 0]
  for (const count of counts) {
    bandOf.push(band)
    inBand += count
    if (inBand >= least) [band, inBand] = [band + 1, 0]
  }
  // What is left at the end is too little to be spread by itself.
  return inBand > 0 && band > 0 ? bandOf.map(one => Math.min(one, band - 1)) : bandOf
}
