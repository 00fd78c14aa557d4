import { readFileSync, rmSync } from 'node:fs'
import { digestOf, sameDigest } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import { ENTRY, KEY_BYTES } from '../../store/format.ts'
import type { EntryType } from '../../store/format.ts'
import type { Store } from '../../store/store.ts'

/** The stores of a run: one is written, and others may be read as well. */
export class Stores {
  readonly own: Store
  readonly #all: readonly Store[]
  /** Results of one run only, where that is asked for. */
  readonly #only: ((key: Digest) => boolean) | null

  constructor(own: Store, others: readonly Store[], only: ((key: Digest) => boolean) | null = null) {
    this.own = own
    this.#all = [own, ...others]
    this.#only = only
  }

  find(type: EntryType, key: Digest): Buffer | null {
    if (type === ENTRY.result && this.#only && !this.#only(key)) return null
    for (const store of this.#all) {
      const found = store.find(type, key)
      if (found) return found
    }
    return null
  }

  has(type: EntryType, key: Digest): boolean {
    return this.#all.some(store => store.has(type, key))
  }

  put(type: EntryType, key: Digest, payload: Uint8Array, objects: readonly Digest[] = []): void {
    this.own.put(type, key, payload, objects)
  }

  /** All results, oldest first; for who looks for something else than a key. */
  *results(): Generator<Buffer> {
    for (const store of this.#all) {
      for (let place = 0; place < store.table.size; place++) {
        const { type, objects } = store.table.at(place)
        const payload = type === ENTRY.result ? store.payloadAt(place) : null
        if (payload) yield payload.subarray(objects * KEY_BYTES)
      }
    }
  }

  async restore(digest: Digest, path: string): Promise<boolean> {
    for (const { objects } of this.#all) if (await objects.restore(digest, path)) return true
    return false
  }

  /** The bytes of an object; null when it is not there, or damaged. */
  objectBytes(digest: Digest): Promise<Buffer | null> {
    return Promise.resolve(this.objectBytesNow(digest))
  }

  objectBytesNow(digest: Digest): Buffer | null {
    for (const { objects, isReadOnly } of this.#all) {
      try {
        const bytes = readFileSync(objects.pathOf(digest))
        if (sameDigest(digestOf(bytes), digest)) return bytes
        // Else it would not be kept anew.
        if (!isReadOnly) rmSync(objects.pathOf(digest), { force: true })
      } catch {
        // Not in this store.
      }
    }
    return null
  }

  async close(): Promise<void> {
    for (const store of this.#all) await store.close()
  }
}
