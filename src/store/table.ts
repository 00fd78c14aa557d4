import { ENTRY, ENTRY_WORDS, WORD } from './format.ts'
import type { Digest } from './digest.ts'

/** Where an entry is, and what it says. */
export interface Entry {
  readonly segment: number
  readonly offset: number
  readonly length: number
  readonly crc: number
  readonly time: number
  readonly type: number
  readonly objects: number
}

/**
 * The entries of all segments, found by key: a hash table in typed arrays, because a million objects take long to make.
 * The last entry with a key counts. Keys are digests, so their first word is as good as a hash.
 */
export class Table {
  #words = new Int32Array(ENTRY_WORDS * 1024)
  #segments = new Uint32Array(1024)
  /** Which entry of its segment each is. */
  #indexes = new Uint32Array(1024)
  /** When each was last used, in seconds. */
  #used = new Uint32Array(1024)
  /** Places in the arrays above, plus one. */
  #slots = new Uint32Array(2048)
  #count = 0

  /** Keys that are in it. */
  get size(): number {
    return this.#count
  }

  /** Makes room for n more at once. */
  reserve(more: number): void {
    const wanted = this.#count + more
    if (wanted > this.#segments.length) {
      const room = Math.max(wanted, this.#segments.length * 2)
      this.#words = grown(this.#words, new Int32Array(room * ENTRY_WORDS))
      this.#segments = grown(this.#segments, new Uint32Array(room))
      this.#indexes = grown(this.#indexes, new Uint32Array(room))
      this.#used = grown(this.#used, new Uint32Array(room))
    }
    if (wanted * 2 <= this.#slots.length) return
    let slots = this.#slots.length
    while (slots < wanted * 2) slots *= 2
    this.#slots = new Uint32Array(slots)
    for (let i = 0; i < this.#count; i++) {
      const at = i * ENTRY_WORDS
      const words = this.#words
      this.#slots[
        this.#slotOf(
          words[at] as number,
          words[at + 1] as number,
          words[at + 2] as number,
          words[at + 3] as number,
        )
      ] = i + 1
    }
  }

  /** Takes in an entry that begins at this word, and is the one with this index of the segment. Returns its place, or -1. */
  add(entry: Int32Array, from: number, segment: number, index: number): number {
    if (this.#count === this.#segments.length || this.#count * 2 >= this.#slots.length) this.reserve(1)
    const slot = this.#slotOf(
      entry[from] as number,
      entry[from + 1] as number,
      entry[from + 2] as number,
      entry[from + 3] as number,
    )
    const known = this.#slots[slot] as number
    const type = ((entry[from + WORD.type] as number) >>> 16) & 0xffff
    const time = (entry[from + WORD.time] as number) >>> 0
    if (type === ENTRY.used) {
      if (known > 0) this.touch(known - 1, time)
      return known - 1
    }
    const place = known > 0 ? known - 1 : this.#count++
    if (known === 0) this.#slots[slot] = place + 1
    for (let i = 0; i < ENTRY_WORDS; i++) this.#words[place * ENTRY_WORDS + i] = entry[from + i] as number
    this.#segments[place] = segment
    this.#indexes[place] = index
    this.touch(place, time)
    return place
  }

  /** It was used at this time, in seconds. */
  touch(place: number, time: number): void {
    if ((this.#used[place] as number) < time) this.#used[place] = time
  }

  segmentAt(place: number): number {
    return this.#segments[place] as number
  }

  indexAt(place: number): number {
    return this.#indexes[place] as number
  }

  /** What kind of entry it is, without an object for all that it says. */
  typeAt(place: number): number {
    return ((this.#words[place * ENTRY_WORDS + WORD.type] as number) >>> 16) & 0xffff
  }

  /** The place of a key, or -1. */
  find(key: Digest): number {
    return (
      (this.#slots[
        this.#slotOf(key.readInt32LE(0), key.readInt32LE(4), key.readInt32LE(8), key.readInt32LE(12))
      ] as number) - 1
    )
  }

  at(place: number): Entry {
    const words = this.#words
    const from = place * ENTRY_WORDS
    const high = words[from + WORD.type] as number
    return {
      segment: this.#segments[place] as number,
      offset: ((words[from + WORD.offset] as number) >>> 0) + (high & 0xffff) * 2 ** 32,
      type: (high >>> 16) & 0xffff,
      length: (words[from + WORD.length] as number) >>> 0,
      crc: (words[from + WORD.crc] as number) >>> 0,
      time: (words[from + WORD.time] as number) >>> 0,
      objects: (words[from + WORD.objects] as number) >>> 0,
    }
  }

  lastUse(place: number): number {
    return this.#used[place] as number
  }

  keyAt(place: number): Digest {
    const { buffer, byteOffset } = this.#words
    return Buffer.from(buffer, byteOffset + place * ENTRY_WORDS * 4, 16)
  }

  /** The slot that has the key, or the one where it would be. */
  #slotOf(a: number, b: number, c: number, d: number): number {
    const slots = this.#slots
    const words = this.#words
    const mask = slots.length - 1
    for (let slot = a & mask; ; slot = (slot + 1) & mask) {
      const place = slots[slot] as number
      if (place === 0) return slot
      const at = (place - 1) * ENTRY_WORDS
      if (words[at] === a && words[at + 1] === b && words[at + 2] === c && words[at + 3] === d) return slot
    }
  }
}

function grown<T extends Int32Array | Uint32Array>(from: T, to: T): T {
  to.set(from)
  return to
}
