/** A binary heap: the item for which `before(item, any other)` holds comes out first. */
export class Heap<T> {
  readonly #items: T[] = []
  readonly #before: (a: T, b: T) => boolean

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before
  }

  get size(): number {
    return this.#items.length
  }

  peek(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    const items = this.#items
    let at = items.length
    items.push(item)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent] as T
      if (!this.#before(item, above)) break
      items[at] = above
      at = parent
    }
    items[at] = item
  }

  pop(): T | undefined {
    const items = this.#items
    const top = items[0]
    const last = items.pop()
    if (items.length === 0 || last === undefined) return top
    const size = items.length
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= size) break
      if (child + 1 < size && this.#before(items[child + 1] as T, items[child] as T)) child++
      const below = items[child] as T
      if (!this.#before(below, last)) break
      items[at] = below
      at = child
    }
    items[at] = last
    return top
  }

  /** All items, in no particular order. */
  *[Symbol.iterator](): Iterator<T> {
    yield* this.#items
  }
}
