import type { Version } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import { Stored } from '../../model/encoding/stored.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import type { Elsewhere } from './elsewhere.ts'

/**
 * Plain buffers exist once. While a thread has one for reading, its owner waits for it to come back; when
 * the thread dies it is lost.
 */
export class BufferOwnership {
  readonly #away = new Map<Stored, (() => void)[]>()
  readonly #lost = new WeakSet<Stored>()
  /** Where there are other machines. */
  elsewhere: Elsewhere | null = null

  lend(stored: Stored): ArrayBuffer[] {
    const buffers = plainBuffers(stored)
    this.#away.set(stored, [])
    return buffers
  }

  isAway(stored: Stored): boolean {
    return this.#away.has(stored)
  }

  isLost(stored: Stored): boolean {
    return this.#lost.has(stored)
  }

  /** Gets what is on other machines only; null where all of it is here. Rejects where a machine was lost with it. */
  home({ blobs }: Stored): Promise<unknown> | null {
    const coming = blobs.flatMap(blob => this.elsewhere?.bring(blob) ?? [])
    return coming.length > 0 ? Promise.all(coming) : null
  }

  whenBack(stored: Stored, go: () => void): void {
    const waiting = this.#away.get(stored)
    if (waiting) waiting.push(go)
    else go()
  }

  /** The buffers are here again, the same or shared ones in their place; takes what it needs off the list. */
  back(stored: Stored, buffers: ArrayBufferLike[]): void {
    stored.blobs = stored.blobs.map(blob =>
      blob instanceof SharedArrayBuffer ? blob : (buffers.shift() ?? blob),
    )
    this.#wake(stored)
  }

  lost(stored: Stored): void {
    this.#lost.add(stored)
    this.#wake(stored)
  }

  #wake(stored: Stored): void {
    const waiting = this.#away.get(stored)
    this.#away.delete(stored)
    for (const go of waiting ?? []) go()
  }
}

export const plainBuffers = (stored: Stored): ArrayBuffer[] =>
  stored.blobs.filter((blob): blob is ArrayBuffer => !(blob instanceof SharedArrayBuffer))

/** Copies plain buffers into shared memory here; for the rare case that no thread can do it. */
export function shareHere(stored: Stored): void {
  stored.blobs = stored.blobs.map(blob => {
    if (blob instanceof SharedArrayBuffer) return blob
    const copy = new SharedArrayBuffer(blob.byteLength)
    new Uint8Array(copy).set(new Uint8Array(blob))
    return copy
  })
}

/** A copy of a value: what is done with it must not reach tasks. */
export function copyOut(version: Version, buffers: BufferOwnership): Kept | Promise<Kept> {
  const kept = version.value as Kept | undefined
  if (kept instanceof Stored && buffers.isAway(kept)) {
    return new Promise((resolve, reject) => {
      buffers.whenBack(kept, () => void Promise.resolve(copyOut(version, buffers)).then(resolve, reject))
    })
  }
  if (kept === undefined || (kept instanceof Stored && buffers.isLost(kept))) {
    return Promise.reject(new MillraceError('MR_DATA_LOST', 'the value is gone'))
  }
  if (!(kept instanceof Stored) || kept.blobs.length === 0 || version.datum.inPlace) return kept
  const coming = buffers.home(kept)
  return coming ? coming.then(() => copyOf(kept)) : copyOf(kept)
}

function copyOf(kept: Stored): Stored {
  return new Stored(
    kept.bytes,
    kept.blobs.map(blob => new Uint8Array(blob).slice().buffer),
  )
}
