/**
 * A queue of byte records in shared memory with one writer and one reader in different threads. Neither
 * side takes a lock and neither needs the event loop of the other: a busy thread finds its next task here
 * without a message, and what it has finished can be seen while it is already in a long next task.
 *
 * Layout: seven 32-bit words (written, read, asleep, waiting, note, records, awaited) and one unused, then the data. A record is its length, a state
 * word, and its bytes, rounded up to 8; a length of -1 says that the rest up to the end is unused.
 */

const WRITTEN = 0
const READ = 1
const ASLEEP = 2
const WAITING = 3
const NOTE = 4
const RECORDS = 5
const AWAITED = 6
const HEADER = 32

/** Records can be taken back by the writer until the reader has claimed them. */
const PENDING = 0
const CLAIMED = 1
const REVOKED = 2

export function createRing(size: number): SharedArrayBuffer {
  return new SharedArrayBuffer(HEADER + size)
}

class RingSide {
  protected readonly words: Int32Array
  protected readonly bytes: Uint8Array
  protected readonly size: number

  constructor(memory: SharedArrayBuffer) {
    this.words = new Int32Array(memory)
    this.bytes = new Uint8Array(memory)
    this.size = memory.byteLength - HEADER
  }
}

export class RingWriter extends RingSide {
  #written = 0
  #records = 0
  #awaited = 0

  /** What the reader noted last, also when its thread has ended since. */
  get note(): number {
    return Atomics.load(this.words, NOTE)
  }

  /** Room for the largest record that is ever accepted: larger ones would make the ring wait too often. */
  get largest(): number {
    return this.size >> 3
  }

  /** Returns the position of the record, for `revoke`, or null when there is no room. */
  write(bytes: Uint8Array, length: number): number | null {
    const needed = (8 + length + 7) & ~7
    const read = Atomics.load(this.words, READ)
    let used = (this.#written - read) | 0
    let at = (this.#written >>> 0) % this.size
    const toEnd = this.size - at
    if (toEnd < needed) {
      if (used + toEnd + needed > this.size) return null
      if (toEnd >= 4) this.words[(HEADER + at) >> 2] = -1
      this.#written = (this.#written + toEnd) | 0
      used += toEnd
      at = 0
    }
    if (used + needed > this.size) return null
    const word = (HEADER + at) >> 2
    this.words[word] = length
    this.words[word + 1] = PENDING
    copyTo(this.bytes, HEADER + at + 8, bytes, length)
    const position = this.#written
    this.#records = (this.#records + 1) | 0
    this.words[RECORDS] = this.#records
    this.#written = (position + needed) | 0
    Atomics.store(this.words, WRITTEN, this.#written)
    return position
  }

  /** Takes back a record that the reader has not claimed. */
  revoke(position: number): boolean {
    // Once the reader has passed it, another record may be in its place.
    if (((position - Atomics.load(this.words, READ)) | 0) < 0) return false
    const at = (position >>> 0) % this.size
    return Atomics.compareExchange(this.words, ((HEADER + at) >> 2) + 1, PENDING, REVOKED) === PENDING
  }

  /** Whether the reader has begun with a record, or is past it. */
  isTaken(position: number): boolean {
    if (((position - Atomics.load(this.words, READ)) | 0) < 0) return true
    const at = (position >>> 0) % this.size
    return Atomics.load(this.words, ((HEADER + at) >> 2) + 1) === CLAIMED
  }

  /** Whether the reader sleeps and has to be woken by a message; asked once per sleep. */
  shouldWake(): boolean {
    return Atomics.exchange(this.words, ASLEEP, 0) === 1
  }

  /** A result of the records so far, of one of them, or of the next n is waited for. */
  hurry(toCome = 0): void {
    const awaited = (this.#records + toCome) | 0
    if (((awaited - this.#awaited) | 0) <= 0) return
    this.#awaited = awaited
    Atomics.store(this.words, AWAITED, awaited)
  }

  waitForRoom(milliseconds: number): void {
    Atomics.store(this.words, WAITING, 1)
    Atomics.wait(this.words, READ, Atomics.load(this.words, READ), milliseconds)
    Atomics.store(this.words, WAITING, 0)
  }
}

export class RingReader extends RingSide {
  #read = 0
  #taken = 0

  set note(number: number) {
    this.words[NOTE] = number
  }

  /** Where the claimed record ends; valid after `next`. */
  end = 0
  #length = 0

  /** All of the memory, for a decoder that is pointed at records. */
  get memory(): Uint8Array {
    return this.bytes
  }

  /** Claims the next record that was not revoked and returns where it begins, or -1. */
  next(): number {
    for (;;) {
      if (Atomics.load(this.words, WRITTEN) === this.#read) return -1
      const at = (this.#read >>> 0) % this.size
      const word = (HEADER + at) >> 2
      const length = this.words[word] as number
      if (length === -1) {
        this.#advance(this.size - at)
        continue
      }
      this.#length = (8 + length + 7) & ~7
      this.#taken = (this.#taken + 1) | 0
      if (Atomics.compareExchange(this.words, word + 1, PENDING, CLAIMED) === PENDING) {
        this.end = HEADER + at + 8 + length
        return HEADER + at + 8
      }
      this.release()
    }
  }

  /** The record is read; the writer may use its place. */
  release(): void {
    this.#advance(this.#length)
  }

  /** How many records wait, roughly: those that were revoked count until they are passed. */
  get waiting(): number {
    return ((this.words[RECORDS] as number) - this.#taken) | 0
  }

  /** Whether someone waits for what comes of the record that was taken last, or of one behind it. */
  get isAwaited(): boolean {
    return ((Atomics.load(this.words, AWAITED) - this.#taken) | 0) >= 0
  }

  get empty(): boolean {
    return Atomics.load(this.words, WRITTEN) === this.#read
  }

  /** From now on the writer has to wake us. Look again afterwards: it may have written just before. */
  sleep(): void {
    Atomics.store(this.words, ASLEEP, 1)
  }

  awake(): void {
    Atomics.store(this.words, ASLEEP, 0)
  }

  #advance(by: number): void {
    this.#read = (this.#read + by) | 0
    Atomics.store(this.words, READ, this.#read)
    if (Atomics.load(this.words, WAITING) === 1) Atomics.notify(this.words, READ)
  }
}

/** For a few bytes a loop is done before `set` has begun. */
function copyTo(target: Uint8Array, at: number, bytes: Uint8Array, length: number): void {
  if (length > 64) target.set(bytes.length === length ? bytes : bytes.subarray(0, length), at)
  else for (let i = 0; i < length; i++) target[at + i] = bytes[i] as number
}
