const PAGE = 1024

interface Page {
  values: Int32Array
  used: number
}

/**
 * A map from ids to positive 32-bit numbers, for ids that are given out in order and retired roughly so.
 * Several times as fast as a Map with a million entries; a page is let go when its last id is retired, so
 * memory follows the ids in use.
 */
export class IdTable {
  readonly #pages = new Map<number, Page>()
  #lastKey = -1
  #lastPage: Page | undefined

  /** The number of this id, or 0 if it has none. */
  get(id: number): number {
    return this.#page(Math.floor(id / PAGE))?.values[id % PAGE] ?? 0
  }

  set(id: number, value: number): void {
    const key = Math.floor(id / PAGE)
    let page = this.#page(key)
    if (page === undefined) {
      page = { values: new Int32Array(PAGE), used: 0 }
      this.#pages.set(key, page)
      this.#lastPage = page
    }
    if (page.values[id % PAGE] === 0) page.used++
    page.values[id % PAGE] = value
  }

  delete(id: number): void {
    const key = Math.floor(id / PAGE)
    const page = this.#page(key)
    if (page === undefined || page.values[id % PAGE] === 0) return
    page.values[id % PAGE] = 0
    if (--page.used > 0) return
    this.#pages.delete(key)
    this.#lastPage = undefined
  }

  get pageCount(): number {
    return this.#pages.size
  }

  #page(key: number): Page | undefined {
    if (key === this.#lastKey) return this.#lastPage
    this.#lastKey = key
    this.#lastPage = this.#pages.get(key)
    return this.#lastPage
  }
}
