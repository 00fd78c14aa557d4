import { MillraceError } from '../../core/errors.ts'
import { codeOf } from '../encoding/typed-arrays.ts'
import type { Tracked } from './tracked-objects.ts'

interface Region {
  readonly start: number
  readonly end: number
  /** The type of the array that covers it. */
  readonly code: number
  /** Null when no task writes it any more, so that it does not keep the value as long as the buffer lives. */
  tracked: Tracked | null
  /** It is inside an object that tasks write as a whole. */
  readonly isPart: boolean
}

/**
 * Plain arrays that tasks write, by the part of their buffer that they cover: rows of a matrix are views of one
 * buffer, and each `subarray` is another object for the same numbers. Equal parts are one datum; what overlaps
 * something that a task is writing has no value that is known here.
 */
export class PlainViews {
  /** Of each buffer in order, and disjoint: what is not being written any more gives way. */
  readonly #buffers = new WeakMap<ArrayBufferLike, Region[]>()
  readonly #regionsOf = new WeakMap<Tracked, Region[]>()
  #any = false

  /** What is being written as the same part of the same buffer. */
  find(view: ArrayBufferView): Tracked | undefined {
    const regions = this.#any ? this.#buffers.get(view.buffer) : undefined
    const region = regions?.[firstAfter(regions, view.byteOffset)]
    return region && isSame(region, view) ? (writerOf(region) ?? undefined) : undefined
  }

  /** Throws when a task is writing some of its numbers as, or in, something other than `owner`. */
  reject(view: ArrayBufferView, owner: Tracked | null): void {
    const regions = this.#any ? this.#buffers.get(view.buffer) : undefined
    if (!regions || view.byteLength === 0) return
    const end = view.byteOffset + view.byteLength
    for (let i = firstAfter(regions, view.byteOffset); i < regions.length; i++) {
      const region = regions[i] as Region
      if (region.start >= end) return
      const writer = writerOf(region)
      if (!writer?.dirty || writer === owner || isSame(region, view)) continue
      throw new MillraceError(
        'MR_ALIAS',
        `the bytes ${view.byteOffset} to ${end} of a buffer overlap the bytes ${region.start} to ${region.end}, which a task is writing as ${region.isPart ? 'part of an object' : 'another array'}`,
        { hint: 'waitOn() what is being written first, or pass parts that are the same or do not overlap.' },
      )
    }
  }

  /** A task writes it now; nothing that overlaps it is being written, but parts of the same object. */
  add(view: ArrayBufferView, tracked: Tracked, isPart: boolean): void {
    if (view.byteLength === 0) return
    this.#any = true
    let regions = this.#buffers.get(view.buffer)
    if (!regions) this.#buffers.set(view.buffer, (regions = []))
    let start = view.byteOffset
    let end = start + view.byteLength
    const from = firstAfter(regions, start)
    let to = from
    for (; to < regions.length; to++) {
      const other = regions[to] as Region
      if (other.start >= end) break
      if (other.tracked !== tracked) continue
      start = Math.min(start, other.start)
      end = Math.max(end, other.end)
    }
    const known = regions[from]
    if (to === from + 1 && known?.tracked === tracked && known.start === start && known.end === end) return
    const region = { start, end, code: codeOf(view), tracked, isPart }
    regions.splice(from, to - from, region)
    const own = this.#regionsOf.get(tracked)
    if (own) own.push(region)
    else this.#regionsOf.set(tracked, [region])
  }

  /** The program has the numbers again. */
  drop(tracked: Tracked): void {
    const own = this.#any ? this.#regionsOf.get(tracked) : undefined
    if (!own) return
    for (const region of own) region.tracked = null
    this.#regionsOf.delete(tracked)
  }
}

/** No task waits for what was removed: its memory is free. */
const writerOf = ({ tracked }: Region): Tracked | null => (tracked?.datum.removed ? null : tracked)

const isSame = (region: Region, view: ArrayBufferView): boolean =>
  !region.isPart &&
  region.start === view.byteOffset &&
  region.end === view.byteOffset + view.byteLength &&
  region.code === codeOf(view)

/** The first region that ends after the place. */
function firstAfter(regions: readonly Region[], place: number): number {
  let low = 0
  let high = regions.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((regions[middle] as Region).end <= place) low = middle + 1
    else high = middle
  }
  return low
}
