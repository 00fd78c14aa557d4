import { levelFor, ROWS_PER_TILE, tileMs } from '../../src/report/dashboard/state/tiles.ts'
import type { TileAnswer } from '../../src/report/dashboard/protocol.ts'
import type { Source } from '../source.ts'
import type { Span } from './span.ts'

const KEPT = 400
const AT_ONCE = 6

interface Kept {
  tile: TileAnswer | null
  revision: number
  isAsked: boolean
}

/** The tiles that the page has, and asks for. What is missing is drawn from a coarser level until it comes. */
export class TileStore {
  readonly #source: Source
  readonly #changed: () => void
  readonly #tiles = new Map<string, Kept>()
  #layout = -1
  #revision = 0
  #asked = 0
  #wanted: [string, number, number, number][] = []

  constructor(source: Source, changed: () => void) {
    this.#source = source
    this.#changed = changed
  }

  /** Tiles that were not complete are asked for again. */
  update(layout: number, revision: number): void {
    if (layout !== this.#layout) this.#tiles.clear()
    this.#layout = layout
    this.#revision = revision
  }

  /** The tiles that cover a span, for rows from one to another; those that are missing are asked for. */
  cover(span: Span, pixels: number, firstRow: number, lastRow: number): TileAnswer[] {
    const level = levelFor((span.to - span.from) / Math.max(1, pixels))
    const wanted: [string, number, number, number][] = []
    const found = new Set<TileAnswer>()
    const first = Math.floor(firstRow / ROWS_PER_TILE)
    const last = Math.floor(Math.max(firstRow, lastRow) / ROWS_PER_TILE)
    for (let group = first; group <= last; group++) {
      const from = Math.max(0, Math.floor(span.from / tileMs(level)))
      const to = Math.max(0, Math.floor(span.to / tileMs(level)))
      for (let index = from; index <= to; index++) {
        const key = `${level}/${index}/${group}`
        const kept = this.#tiles.get(key)
        const isFresh = kept?.tile && (kept.tile.isComplete || kept.revision === this.#revision)
        if (!isFresh) wanted.push([key, level, index, group])
        const best = kept?.tile ?? this.#coarser(level, index, group)
        if (best) found.add(best)
      }
    }
    this.#wanted = wanted
    this.#ask()
    // Coarse ones first, so that finer ones are drawn over them.
    return [...found].sort((a, b) => b.level - a.level)
  }

  #coarser(level: number, index: number, group: number): TileAnswer | null {
    for (let up = 1; up <= 8; up++) {
      const tile = this.#tiles.get(`${level + up}/${Math.floor(index / 2 ** up)}/${group}`)?.tile
      if (tile) return tile
    }
    return null
  }

  #ask(): void {
    while (this.#asked < AT_ONCE) {
      const next = this.#wanted.shift()
      if (!next) return
      const [key, level, index, group] = next
      const kept: Kept = this.#tiles.get(key) ?? { tile: null, revision: -1, isAsked: false }
      if (kept.isAsked) continue
      kept.isAsked = true
      this.#tiles.set(key, kept)
      this.#asked++
      const revision = this.#revision
      const layout = this.#layout
      this.#source
        .tile(level, index, group)
        .then(
          tile => {
            if (layout !== this.#layout || tile.layout !== layout) return
            kept.tile = tile
            kept.revision = revision
          },
          () => {},
        )
        .finally(() => {
          kept.isAsked = false
          this.#asked--
          this.#forget()
          this.#changed()
        })
    }
  }

  #forget(): void {
    for (const [key, { isAsked }] of this.#tiles) {
      if (this.#tiles.size <= KEPT) return
      if (!isAsked) this.#tiles.delete(key)
    }
  }
}
