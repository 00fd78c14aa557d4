import { digestOf } from './digest.ts'
import { ENTRY } from './format.ts'
import type { Addition } from './segment.ts'
import type { Table } from './table.ts'

/** Entries of one segment that a run has used: from and to, which is the first behind them, in turn. */
export interface Uses {
  readonly of: string
  readonly ranges: readonly number[]
}

/**
 * Entries that say which results a run has used. A run that is resumed uses nearly all that an earlier one kept, in the order
 * in which that kept them: a few ranges say it, where an entry for each would make the store larger with each run.
 */
export function usesOf(places: readonly number[], table: Table, names: readonly string[]): Addition[] {
  const bySegment = new Map<number, number[]>()
  for (const place of places) {
    const segment = table.segmentAt(place)
    const indexes = bySegment.get(segment)
    if (indexes) indexes.push(table.indexAt(place))
    else bySegment.set(segment, [table.indexAt(place)])
  }
  return [...bySegment].map(([segment, indexes]) => {
    const payload = Buffer.from(
      JSON.stringify({ of: names[segment] ?? '', ranges: rangesOf(indexes) } satisfies Uses),
    )
    return { type: ENTRY.uses, key: digestOf(payload), payload, objects: 0 }
  })
}

function rangesOf(indexes: readonly number[]): number[] {
  const ranges: number[] = []
  for (const index of Uint32Array.from(indexes).sort()) {
    const end = ranges.at(-1)
    if (end === index) ranges[ranges.length - 1] = index + 1
    else if (end !== index + 1) ranges.push(index, index + 1)
  }
  return ranges
}

/** Null when it is none. */
export function readUses(payload: Buffer): Uses | null {
  try {
    const { of, ranges } = JSON.parse(payload.toString()) as Uses
    return typeof of === 'string' && Array.isArray(ranges) && ranges.every(Number.isSafeInteger)
      ? { of, ranges }
      : null
  } catch {
    return null
  }
}

/** Places in the table of the entries that were used; `places` has those of the segment, block by block. */
export function* placesIn({ ranges }: Uses, places: readonly Int32Array[]): Generator<number> {
  let block = 0
  let begin = 0
  for (let i = 0; i + 1 < ranges.length; i += 2) {
    for (let index = ranges[i] as number; index < (ranges[i + 1] as number); index++) {
      while (block < places.length && index >= begin + (places[block] as Int32Array).length)
        begin += (places[block++] as Int32Array).length
      const place = places[block]?.[index - begin] ?? -1
      if (block === places.length) return
      if (place >= 0) yield place
    }
  }
}
