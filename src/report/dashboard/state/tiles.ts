import { outcomeNumber, type Lane } from './lanes.ts'

/**
 * The timeline in tiles. A tile has the slices of some rows in a span of time, at one level of detail. The buckets of
 * level 0 are 2^-6 ms wide, those of each next level twice as wide. Slices narrower than a bucket are merged, so a tile
 * has at most one item per bucket and row, however many tasks there are.
 */
export const BUCKETS = 256
/** Positions within a tile are in eighths of a bucket. */
export const PARTS = 8
export const ROWS_PER_TILE = 32
export const MAX_LEVEL = 40

export const bucketMs = (level: number): number => 2 ** (level - 6)
export const tileMs = (level: number): number => bucketMs(level) * BUCKETS

/** The level whose buckets are closest to this many milliseconds without being wider. */
export const levelFor = (ms: number): number =>
  Math.max(0, Math.min(MAX_LEVEL, Math.floor(Math.log2(Math.max(ms, 1e-9)) + 6)))

/**
 * One row of a tile: six numbers per item. `x` and `width` are in parts of a bucket, then the kind, the outcome, the task
 * (or minus the number of tasks that were merged), and how much of its time is filled, from 0 to 255.
 */
export type TileRow = number[]
export const ITEM = 6

export function tileRow(lane: Lane, level: number, index: number): TileRow {
  const bucket = bucketMs(level)
  const from = index * bucket * BUCKETS
  const to = from + bucket * BUCKETS
  const row: TileRow = []
  const merged = new Merged(row)
  for (let i = lane.firstAfter(from); i < lane.size; i++) {
    const start = lane.starts.get(i)
    if (start >= to) break
    const end = lane.ends.get(i)
    const kind = lane.kinds.get(i)
    const outcome = lane.outcomes.get(i)
    if (end - start < bucket) {
      const at = Math.floor(((start + end) / 2 - from) / bucket)
      if (at >= 0 && at < BUCKETS) merged.add(at, (end - start) / bucket, kind, outcome, lane.tasks.get(i))
      continue
    }
    merged.flush()
    const x = Math.round(((Math.max(start, from) - from) / bucket) * PARTS)
    const width = Math.round(((Math.min(end, to) - from) / bucket) * PARTS) - x
    if (width > 0) row.push(x, width, kind, outcome, lane.tasks.get(i), 255)
  }
  merged.flush()
  return row
}

/** Slices of one bucket, joined into one item with the kind that took most time and the worst outcome. */
class Merged {
  readonly #row: TileRow
  #bucket = -1
  #count = 0
  #filled = 0
  #kind = 0
  #longest = 0
  #outcome = 0
  #task = 0

  constructor(row: TileRow) {
    this.#row = row
  }

  add(bucket: number, filled: number, kind: number, outcome: number, task: number): void {
    if (bucket !== this.#bucket) this.flush()
    this.#bucket = bucket
    this.#count++
    this.#filled += filled
    this.#outcome = Math.max(this.#outcome, outcome)
    if (filled < this.#longest) return
    this.#longest = filled
    this.#kind = kind
    this.#task = task
  }

  flush(): void {
    if (this.#count === 0) return
    const who = this.#count === 1 ? this.#task : -this.#count
    const fill = Math.max(1, Math.min(255, Math.round(this.#filled * 255)))
    this.#row.push(this.#bucket * PARTS, PARTS, this.#kind, this.#outcome, who, fill)
    this.#bucket = -1
    this.#count = 0
    this.#filled = 0
    this.#longest = 0
    this.#outcome = outcomeNumber('ok')
  }
}

/** The slice of a row at a moment, or the one closest to it within `reach` milliseconds. */
export function sliceAt(lane: Lane, time: number, reach: number): number | null {
  const at = lane.firstAfter(time - reach)
  if (at >= lane.size || lane.starts.get(at) > time + reach) return null
  let best = at
  let distance = Infinity
  for (let i = at; i < lane.size && lane.starts.get(i) <= time + reach; i++) {
    const away = Math.max(lane.starts.get(i) - time, time - lane.ends.get(i), 0)
    if (away < distance) {
      distance = away
      best = i
    }
    if (away === 0) break
  }
  return best
}
