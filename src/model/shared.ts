import { Datum } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import type { Stored } from './stored.ts'
import { codeOf } from './typed-arrays.ts'
import type { Tracked } from './tracker.ts'

type SharedType<T> = { new (buffer: SharedArrayBuffer): T; BYTES_PER_ELEMENT: number; name: string }

/**
 * An array in shared memory: tasks on this machine work on it in place and it is never copied. From the
 * call until `waitOn` it belongs to the runtime.
 */
export function shared<T>(type: SharedType<T>, length: number): T {
  if (!Number.isInteger(length) || length < 0) {
    throw new MillraceError(
      'MR_OPTION',
      `shared(${type.name}, ${length}): the length is not a whole number from 0`,
    )
  }
  return new type(new SharedArrayBuffer(length * type.BYTES_PER_ELEMENT))
}

interface Region {
  start: number
  end: number
  tracked: Tracked
}

/** Data in shared memory, by the part of the buffer that they cover. Parts may be disjoint or equal. */
export class SharedMemory {
  readonly #buffers = new WeakMap<ArrayBufferLike, Map<string, Region>>()

  find(view: ArrayBufferView): Tracked | undefined {
    return this.#buffers.get(view.buffer)?.get(keyOf(view))?.tracked
  }

  track(view: ArrayBufferView, capture: () => Stored): Tracked {
    let regions = this.#buffers.get(view.buffer)
    if (!regions) this.#buffers.set(view.buffer, (regions = new Map()))
    const key = keyOf(view)
    const known = regions.get(key)
    if (known) return known.tracked
    const start = view.byteOffset
    const end = start + view.byteLength
    for (const region of regions.values()) {
      if (start < region.end && region.start < end) {
        throw new MillraceError(
          'MR_ALIAS',
          `the bytes ${start} to ${end} of a shared array overlap the bytes ${region.start} to ${region.end}, which were passed before`,
          { hint: 'Pass parts that are the same or do not overlap.' },
        )
      }
    }
    const datum = new Datum(null, true)
    datum.current.value = capture()
    const tracked: Tracked = { datum, dirty: false, seen: null }
    regions.set(key, { start, end, tracked })
    return tracked
  }
}

const keyOf = (view: ArrayBufferView): string => `${codeOf(view)} ${view.byteOffset} ${view.byteLength}`
