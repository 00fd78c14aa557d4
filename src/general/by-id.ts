const SMALLEST = 64
/** Bursts of some hundred come and go all the time: tables up to here do not shrink with each of them. */
const KEPT = 4096

/**
 * Few things out of many that come and go, by their numbers. Unlike a Map it leaves nothing behind: the tables that a Map
 * grows out of stay linked to one another, and keep what was in them until all memory is looked through.
 */
export class ById<T extends { readonly id: number }> {
  #table: (T | undefined)[] = empty(SMALLEST)
  #shift = 32 - Math.log2(SMALLEST)
  #size = 0

  get size(): number {
    return this.#size
  }

  get(id: number): T | undefined {
    const table = this.#table
    const mask = table.length - 1
    for (let at = this.#home(id); ; at = (at + 1) & mask) {
      const found = table[at]
      if (found === undefined || found.id === id) return found
    }
  }

  /** In the place of the one with the same number, if there is one. */
  add(item: T): void {
    if (this.#size * 2 >= this.#table.length) this.#resize(2)
    const table = this.#table
    const mask = table.length - 1
    let at = this.#home(item.id)
    for (let found = table[at]; found !== undefined && found.id !== item.id; found = table[at]) {
      at = (at + 1) & mask
    }
    if (table[at] === undefined) this.#size++
    table[at] = item
  }

  delete(id: number): boolean {
    const table = this.#table
    const mask = table.length - 1
    let at = this.#home(id)
    for (let found = table[at]; found?.id !== id; found = table[at]) {
      if (found === undefined) return false
      at = (at + 1) & mask
    }
    this.#size--
    this.#closeGap(at)
    // Iteration must not cost more than what is left.
    if (this.#size * 8 < table.length && table.length > KEPT) this.#resize(0.5)
    return true
  }

  /** In no order; nothing may come or go meanwhile. */
  *[Symbol.iterator](): Iterator<T> {
    for (const item of this.#table) if (item !== undefined) yield item
  }

  /** Numbers that follow each other are scattered: in a row without gaps each removal would look at all of them. */
  #home(id: number): number {
    return Math.imul(id, 0x9e37_79b1) >>> this.#shift
  }

  /** Those behind move up as far as they may: nothing that is searched for may lie behind a gap. */
  #closeGap(gap: number): void {
    const table = this.#table
    const mask = table.length - 1
    for (let at = (gap + 1) & mask; ; at = (at + 1) & mask) {
      const item = table[at]
      if (item === undefined) break
      const wayFromHome = (at - this.#home(item.id)) & mask
      if (wayFromHome < ((at - gap) & mask)) continue
      table[gap] = item
      gap = at
    }
    table[gap] = undefined
  }

  #resize(factor: 0.5 | 2): void {
    const old = this.#table
    this.#table = empty(old.length * factor)
    this.#shift -= Math.log2(factor)
    this.#size = 0
    for (const item of old) if (item !== undefined) this.add(item)
  }
}

function empty<T>(length: number): (T | undefined)[] {
  const table: (T | undefined)[] = []
  for (let i = 0; i < length; i++) table.push(undefined)
  return table
}
