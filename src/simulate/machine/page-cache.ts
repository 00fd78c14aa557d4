/**
 * The memory in which a node keeps what was read and written last. It is full by bytes; what was not used for
 * the longest time goes first, and of a large file only as much as room is needed.
 */
export class PageCache {
  readonly capacity: number
  /** Bytes that are there, by file, the least recently used first. */
  readonly #kept = new Map<number, number>()
  #used = 0
  hits = 0
  misses = 0

  constructor(capacity: number) {
    this.capacity = capacity
  }

  get used(): number {
    return this.#used
  }

  /** How much of the file is there. */
  has(file: number): number {
    return this.#kept.get(file) ?? 0
  }

  /** The file was read: returns how many of its bytes did not have to come from elsewhere. */
  read(file: number, bytes: number): number {
    const hit = Math.min(bytes, this.has(file))
    this.hits += hit
    this.misses += bytes - hit
    this.write(file, bytes)
    return hit
  }

  /** The file was written, or read from elsewhere. */
  write(file: number, bytes: number): void {
    this.drop(file)
    const kept = Math.min(bytes, this.capacity)
    if (kept <= 0) return
    this.#makeRoom(kept)
    this.#kept.set(file, kept)
    this.#used += kept
  }

  drop(file: number): void {
    this.#used -= this.has(file)
    this.#kept.delete(file)
  }

  #makeRoom(bytes: number): void {
    let excess = this.#used + bytes - this.capacity
    for (const [file, kept] of this.#kept) {
      if (excess <= 0) return
      const gone = Math.min(kept, excess)
      if (gone === kept) this.#kept.delete(file)
      else this.#kept.set(file, kept - gone)
      this.#used -= gone
      excess -= gone
    }
  }
}
