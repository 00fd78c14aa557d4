import { isShared } from './memory.ts'
import { codeOf } from './typed-arrays.ts'

/** A part of a buffer that several objects of one value have in common. */
export interface Region {
  start: number
  end: number
  /** Its number among the regions of the value, once it is written. */
  number: number
  beside: { buffer: ArrayBufferLike; offset: number } | null
}

interface Use {
  start: number
  end: number
  isShared: boolean
  parts: { start: number; end: number }[]
}

const BUFFER = codeOf(Buffer.alloc(0))

/**
 * Finds out which memory several views in a value have in common: in the other thread it must be one memory as well.
 * A first pass over the value notes all views, a second one is made only when there is such memory.
 */
export class Regions {
  /** Regions that were written. */
  count = 0
  #first: ArrayBufferView | null = null
  #isFirstBuffer = false
  #uses: Map<ArrayBufferLike, Use> | null = null
  #found: Map<ArrayBufferLike, Region> | null = null

  /** The region of a view, in the second pass; the first only notes it. Shared memory is one everywhere. */
  of(view: ArrayBufferView, isBuffer = false): Region | null {
    if (this.#found) return this.#found.get(view.buffer) ?? null
    if (isShared(view.buffer)) return null
    if (!this.#first) {
      // Most values have one array, if any.
      this.#first = view
      this.#isFirstBuffer = isBuffer
      return null
    }
    if (!this.#uses) {
      this.#uses = new Map()
      this.#note(this.#first, this.#isFirstBuffer)
    }
    this.#note(view, isBuffer)
    return null
  }

  /** Ends the first pass: whether another is needed. */
  found(): boolean {
    for (const [buffer, { start, end, isShared }] of this.#uses ?? []) {
      if (!isShared) continue
      // Views need not begin where a view of another type may.
      const region = { start: start - (start % 8), end, number: -1, beside: null }
      ;(this.#found ??= new Map()).set(buffer, region)
    }
    return this.#found !== null
  }

  clear(): void {
    if (!this.#first) return
    this.count = 0
    this.#first = this.#uses = this.#found = null
  }

  #note(view: ArrayBufferView, isBuffer: boolean): void {
    const uses = this.#uses as Map<ArrayBufferLike, Use>
    const start = view.byteOffset
    const end = start + view.byteLength
    const use = uses.get(view.buffer)
    if (!use) {
      uses.set(view.buffer, { start, end, isShared: false, parts: [{ start, end }] })
      return
    }
    use.start = Math.min(use.start, start)
    use.end = Math.max(use.end, end)
    // Node puts small Buffers that have nothing to do with each other into one memory.
    const isPooled = !isBuffer && codeOf(view) === BUFFER && view.buffer.byteLength === Buffer.poolSize
    use.isShared ||= !isPooled || use.parts.some(part => start < part.end && part.start < end)
    if (isPooled) use.parts.push({ start, end })
  }
}
