const EMPTY: readonly undefined[] = []
const FIRST: readonly undefined[] = [undefined, undefined]

/** A queue with cheap ends: a ring that doubles. It is small at first, because there may be a million that hold one item or none. */
export class Deque<T> {
  #ring: (T | undefined)[] = EMPTY as (T | undefined)[]
  #head = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  push(item: T): void {
    if (this.#size === this.#ring.length) this.#grow()
    this.#ring[(this.#head + this.#size) & (this.#ring.length - 1)] = item
    this.#size++
  }

  unshift(item: T): void {
    if (this.#size === this.#ring.length) this.#grow()
    this.#head = (this.#head - 1) & (this.#ring.length - 1)
    this.#ring[this.#head] = item
    this.#size++
  }

  peek(): T | undefined {
    return this.#size === 0 ? undefined : this.#ring[this.#head]
  }

  peekLast(): T | undefined {
    return this.#size === 0 ? undefined : this.#ring[(this.#head + this.#size - 1) & (this.#ring.length - 1)]
  }

  shift(): T | undefined {
    if (this.#size === 0) return undefined
    const item = this.#ring[this.#head]
    this.#ring[this.#head] = undefined
    this.#head = (this.#head + 1) & (this.#ring.length - 1)
    this.#size--
    return item
  }

  pop(): T | undefined {
    if (this.#size === 0) return undefined
    const at = (this.#head + this.#size - 1) & (this.#ring.length - 1)
    const item = this.#ring[at]
    this.#ring[at] = undefined
    this.#size--
    return item
  }

  /** Takes an item out of the middle; linear, for short queues. */
  remove(item: T): boolean {
    const kept = [...this]
    const at = kept.indexOf(item)
    if (at < 0) return false
    kept.splice(at, 1)
    this.#ring.fill(undefined)
    this.#head = 0
    this.#size = 0
    for (const one of kept) this.push(one)
    return true
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.#size; i++) yield this.#ring[(this.#head + i) & (this.#ring.length - 1)] as T
  }

  #grow(): void {
    const old = this.#ring
    const room = old.length === 0 ? FIRST : old.map(() => undefined)
    this.#ring = old.slice(this.#head).concat(old.slice(0, this.#head), room)
    this.#head = 0
  }
}
