import { Deque } from './deque.ts'
import { Heap } from './heap.ts'

/**
 * A priority queue for items that mostly come in order, or in reverse order: those cost the same however
 * many there are. Only items that belong in the middle go to a heap.
 */
export class OrderedQueue<T> {
  readonly #run = new Deque<T>()
  readonly #rest: Heap<T>
  readonly #before: (a: T, b: T) => boolean

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before
    this.#rest = new Heap(before)
  }

  get size(): number {
    return this.#run.size + this.#rest.size
  }

  push(item: T): void {
    const run = this.#run
    if (run.size === 0 || !this.#before(item, run.peekLast() as T)) run.push(item)
    else if (this.#before(item, run.peek() as T)) run.unshift(item)
    else this.#rest.push(item)
  }

  peek(): T | undefined {
    return this.#fromRest() ? this.#rest.peek() : this.#run.peek()
  }

  pop(): T | undefined {
    return this.#fromRest() ? this.#rest.pop() : this.#run.shift()
  }

  /** Takes an item out. It looks at all of them, so it is for what happens rarely. */
  delete(item: T): void {
    const others: T[] = []
    for (let one = this.pop(); one !== undefined; one = this.pop()) if (one !== item) others.push(one)
    for (const one of others) this.push(one)
  }

  #fromRest(): boolean {
    if (this.#rest.size === 0) return false
    return this.#run.size === 0 || this.#before(this.#rest.peek() as T, this.#run.peek() as T)
  }
}
