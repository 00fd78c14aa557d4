import { bytes, ids, times } from './columns.ts'

/** What became of a slice; the number is its place in this list. */
export const SLICE_OUTCOMES = ['ok', 'running', 'blocked', 'returned', 'cancelled', 'failed'] as const
export type SliceOutcome = (typeof SLICE_OUTCOMES)[number]

export const outcomeNumber = (outcome: SliceOutcome): number => SLICE_OUTCOMES.indexOf(outcome)

/** All slices of one lane in order of time. They do not overlap. */
export class Lane {
  readonly node: number
  readonly lane: number
  readonly isIo: boolean
  readonly starts = times()
  readonly ends = times()
  readonly tasks = ids()
  readonly kinds = ids()
  readonly outcomes = bytes()
  size = 0

  constructor(node: number, lane: number, isIo: boolean) {
    this.node = node
    this.lane = lane
    this.isIo = isIo
  }

  push(start: number, end: number, task: number, kind: number, outcome: number): void {
    // Threads report in batches, so a slice may come a few places late.
    let at = this.size
    while (at > 0 && this.starts.get(at - 1) > start) {
      this.#copy(at - 1, at)
      at--
    }
    this.starts.set(at, start)
    this.ends.set(at, end)
    this.tasks.set(at, task)
    this.kinds.set(at, kind)
    this.outcomes.set(at, outcome)
    this.size++
  }

  /** Index of the first slice that ends after this time. */
  firstAfter(time: number): number {
    let low = 0
    let high = this.size
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.ends.get(middle) > time) high = middle
      else low = middle + 1
    }
    return low
  }

  #copy(from: number, to: number): void {
    this.starts.set(to, this.starts.get(from))
    this.ends.set(to, this.ends.get(from))
    this.tasks.set(to, this.tasks.get(from))
    this.kinds.set(to, this.kinds.get(from))
    this.outcomes.set(to, this.outcomes.get(from))
  }
}

/** The lanes of all nodes, in the order in which they are shown: by node, CPUs before I/O executors. */
export class Lanes {
  /** Changes when a lane is added, because rows then have other numbers. */
  layout = 0
  rows: Lane[] = []
  readonly #byPlace = new Map<string, Lane>()

  of(node: number, lane: number, cpus: number): Lane {
    const key = `${node}/${lane}`
    let found = this.#byPlace.get(key)
    if (found === undefined) {
      found = new Lane(node, lane, lane >= cpus)
      this.#byPlace.set(key, found)
      this.rows = [...this.rows, found].sort((a, b) => a.node - b.node || a.lane - b.lane)
      this.layout++
    }
    return found
  }
}
