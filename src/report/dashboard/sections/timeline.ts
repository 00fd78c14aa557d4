import { clean } from '../../text.ts'
import type { RunModel } from '../state/run-model.ts'
import { ROWS_PER_TILE, sliceAt, tileMs, tileRow } from '../state/tiles.ts'
import type { TileAnswer, TimelineSection } from '../protocol.ts'

/** Tiles that are kept, because several pages ask for the same. */
const KEPT_TILES = 600

/** The rows of the timeline, and what runs now. */
export function timelineSection(model: RunModel, now: number, revision: number): TimelineSection {
  const rows = model.lanes.rows.map(({ node, lane, isIo }) => ({ node, lane, isIo }))
  const places = new Map(rows.map(({ node, lane }, row) => [`${node}/${lane}`, row]))
  const open: TimelineSection['open'] = []
  for (const { task, node, lane, since, isBlocked } of model.statistics.slowest(1000)) {
    const row = places.get(`${node}/${lane}`)
    if (row !== undefined && !isBlocked) open.push([row, since, task, model.tasks.kinds.get(task)])
  }
  return {
    end: now,
    layout: model.lanes.layout,
    revision,
    rows,
    nodes: model.nodes.map(node => clean(node.name)),
    kinds: [...model.kinds.values()].map(({ kind, name }) => ({ kind, name: clean(name) })),
    open,
  }
}

/** Makes tiles, and keeps those that are asked for. A tile that time has passed does not change any more. */
export class TileCache {
  readonly #model: RunModel
  readonly #kept = new Map<string, { tile: TileAnswer; revision: number }>()

  constructor(model: RunModel) {
    this.#model = model
  }

  /** `stableUntil`: before it, no slice will be added. `revision` changes when slices were. */
  tile(level: number, index: number, group: number, stableUntil: number, revision: number): TileAnswer {
    const { lanes } = this.#model
    const key = `${level}/${index}/${group}/${lanes.layout}`
    const kept = this.#kept.get(key)
    if (kept && (kept.tile.isComplete || kept.revision === revision)) return kept.tile
    const tile: TileAnswer = {
      level,
      index,
      group,
      layout: lanes.layout,
      isComplete: (index + 1) * tileMs(level) <= stableUntil,
      rows: lanes.rows
        .slice(group * ROWS_PER_TILE, (group + 1) * ROWS_PER_TILE)
        .map(lane => tileRow(lane, level, index)),
    }
    this.#kept.delete(key)
    this.#kept.set(key, { tile, revision })
    if (this.#kept.size > KEPT_TILES) {
      const [oldest] = this.#kept.keys()
      this.#kept.delete(oldest as string)
    }
    return tile
  }
}

/** The task whose slice is at, or closest to, a moment on a row. */
export function taskAt(model: RunModel, row: number, time: number, reach: number): number | null {
  const lane = model.lanes.rows[row]
  if (!lane) return null
  const at = sliceAt(lane, time, reach)
  return at === null ? null : lane.tasks.get(at)
}
