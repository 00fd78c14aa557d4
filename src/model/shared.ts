import { Datum } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import type { Stored } from './encoding/stored.ts'
import { isCommon } from './encoding/memory.ts'
import { codeOf, memoryOf } from './encoding/typed-arrays.ts'
import type { Tracked } from './capture/tracked-objects.ts'

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

/** Data in shared memory, by the part of the buffer that they cover. Parts may be disjoint or equal. @internal */
export class SharedMemory {
  readonly #buffers = new WeakMap<ArrayBufferLike, Map<string, Region>>()

  find(value: InSharedMemory): Tracked | undefined {
    return this.#buffers.get(bufferOf(value))?.get(keyOf(value))?.tracked
  }

  track(value: InSharedMemory, capture: () => Stored): Tracked {
    const buffer = bufferOf(value)
    let regions = this.#buffers.get(buffer)
    if (!regions) this.#buffers.set(buffer, (regions = new Map()))
    const key = keyOf(value)
    const known = regions.get(key)
    if (known) return known.tracked
    const { byteOffset: start, byteLength } = memoryOf(value)
    const end = start + byteLength
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
    const tracked: Tracked = { datum, dirty: false, seen: null, own: null, held: null }
    regions.set(key, { start, end, tracked })
    return tracked
  }
}

/** A view of shared memory, or all of it. @internal */
export type InSharedMemory = ArrayBufferView | SharedArrayBuffer

/** @internal */
export const isInSharedMemory = (value: object): value is InSharedMemory =>
  ArrayBuffer.isView(value) ? isCommon(value.buffer) : value instanceof SharedArrayBuffer && isCommon(value)

export const bufferOf = (value: InSharedMemory): ArrayBufferLike =>
  ArrayBuffer.isView(value) ? value.buffer : value

const keyOf = (value: InSharedMemory): string =>
  ArrayBuffer.isView(value) ? `${codeOf(value)} ${value.byteOffset} ${value.byteLength}` : 'all'
