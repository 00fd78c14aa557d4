import type { Task } from '../tasks/task.ts'
import type { IoClass } from './io-queue.ts'
import type { Opening } from './storage.ts'

/** Says which of two tasks of one line is to be tried first; of two tasks, one always is. */
export type TaskOrder = (a: Task, b: Task) => boolean

const NONE = 0

/**
 * Classes in the order of their first tasks: a treap whose subtrees know the least that any of their classes asks
 * for. So the first class that fits into what is free is found without looking at those that do not. What a search looks
 * at lies together in a few arrays: classes and tasks are everywhere in memory, and each look at one costs more than all else.
 */
export class ClassTree {
  #root = NONE
  /** The first of all; null if it has to be looked for. */
  #head: IoClass | null = null
  readonly #isBefore: TaskOrder
  /** Weights only have to differ; they come from a sequence, so that a run can be repeated. */
  #seed = 0x9e3779b9
  /** By place: what the class asks for, then the least of its subtree: bandwidth and size of each. */
  #asks = new Float64Array(4 * 8)
  /** By place: below it on the left, and on the right. */
  #below = new Int32Array(2 * 8)
  #weights = new Uint32Array(8)
  readonly #classes: (IoClass | null)[] = [null]
  readonly #free: number[] = []

  constructor(isBefore: TaskOrder) {
    this.#isBefore = isBefore
  }

  get isEmpty(): boolean {
    return this.#root === NONE
  }

  /** No class but one. */
  get isSingle(): boolean {
    const root = this.#root
    return root !== NONE && this.#left(root) === NONE && this.#right(root) === NONE
  }

  add(one: IoClass): void {
    const isHead = this.isEmpty || (this.#head && this.#isBefore(taskOf(one), taskOf(this.#head)))
    if (isHead) this.#head = one
    this.#root = this.#insert(this.#root, this.#take(one))
  }

  /** The class must have the same first task as when it was added. */
  delete(one: IoClass): void {
    if (this.#head === one) this.#head = null
    this.#root = this.#remove(this.#root, one.place, taskOf(one))
    this.#classes[one.place] = null
    this.#free.push(one.place)
    one.place = NONE
  }

  /** The first class after a task that fits into one of the openings; null stands for no condition. */
  first(after: Task | null, openings: readonly Opening[] | null): IoClass | null {
    const head = this.#head
    // All others come after the first: their tasks need not be looked at.
    if (after && openings && after === head?.first && !fits(openings, head.bandwidth, head.size)) {
      return this.#at(this.#find(this.#root, null, openings))
    }
    if (after || openings) return this.#at(this.#find(this.#root, after, openings))
    return (this.#head ??= this.#at(this.#find(this.#root, null, null)))
  }

  // --- places ---

  #take(one: IoClass): number {
    const place = this.#free.pop() ?? this.#classes.push(null) - 1
    if (place >= this.#weights.length) this.#grow()
    this.#seed = (Math.imul(this.#seed, 1664525) + 1013904223) >>> 0
    this.#weights[place] = this.#seed
    this.#asks[4 * place] = one.bandwidth
    this.#asks[4 * place + 1] = one.size
    this.#classes[place] = one
    one.place = place
    return place
  }

  #grow(): void {
    const asks = new Float64Array(2 * this.#asks.length)
    const below = new Int32Array(2 * this.#below.length)
    const weights = new Uint32Array(2 * this.#weights.length)
    asks.set(this.#asks)
    below.set(this.#below)
    weights.set(this.#weights)
    this.#asks = asks
    this.#below = below
    this.#weights = weights
  }

  #at(place: number): IoClass | null {
    return this.#classes[place] ?? null
  }

  #task(place: number): Task {
    return taskOf(this.#classes[place] as IoClass)
  }

  #left(place: number): number {
    return this.#below[2 * place] as number
  }

  #right(place: number): number {
    return this.#below[2 * place + 1] as number
  }

  // --- the tree ---

  #find(at: number, after: Task | null, openings: readonly Opening[] | null): number {
    if (at === NONE) return NONE
    const asks = this.#asks
    const i = 4 * at
    if (openings && !fits(openings, asks[i + 2] as number, asks[i + 3] as number)) return NONE
    if (after && !this.#isBefore(after, this.#task(at))) return this.#find(this.#right(at), after, openings)
    const left = this.#find(this.#left(at), after, openings)
    if (left !== NONE) return left
    if (!openings || fits(openings, asks[i] as number, asks[i + 1] as number)) return at
    return this.#find(this.#right(at), null, openings)
  }

  #insert(at: number, one: number): number {
    if (at === NONE) return this.#summed(one, NONE, NONE)
    if ((this.#weights[one] as number) > (this.#weights[at] as number)) {
      const [lower, upper] = this.#split(at, this.#task(one))
      return this.#summed(one, lower, upper)
    }
    return this.#isBefore(this.#task(one), this.#task(at))
      ? this.#summed(at, this.#insert(this.#left(at), one), this.#right(at))
      : this.#summed(at, this.#left(at), this.#insert(this.#right(at), one))
  }

  #split(at: number, by: Task): [number, number] {
    if (at === NONE) return [NONE, NONE]
    if (this.#isBefore(by, this.#task(at))) {
      const [lower, upper] = this.#split(this.#left(at), by)
      return [lower, this.#summed(at, upper, this.#right(at))]
    }
    const [lower, upper] = this.#split(this.#right(at), by)
    return [this.#summed(at, this.#left(at), lower), upper]
  }

  #remove(at: number, one: number, task: Task): number {
    if (at === NONE) return NONE
    if (at === one) return this.#joined(this.#left(at), this.#right(at))
    return this.#isBefore(task, this.#task(at))
      ? this.#summed(at, this.#remove(this.#left(at), one, task), this.#right(at))
      : this.#summed(at, this.#left(at), this.#remove(this.#right(at), one, task))
  }

  #joined(lower: number, upper: number): number {
    if (lower === NONE) return upper
    if (upper === NONE) return lower
    return (this.#weights[lower] as number) > (this.#weights[upper] as number)
      ? this.#summed(lower, this.#left(lower), this.#joined(this.#right(lower), upper))
      : this.#summed(upper, this.#joined(lower, this.#left(upper)), this.#right(upper))
  }

  #summed(at: number, left: number, right: number): number {
    const asks = this.#asks
    this.#below[2 * at] = left
    this.#below[2 * at + 1] = right
    for (let of = 0; of < 2; of++) {
      let least = asks[4 * at + of] as number
      if (left !== NONE) least = Math.min(least, asks[4 * left + 2 + of] as number)
      if (right !== NONE) least = Math.min(least, asks[4 * right + 2 + of] as number)
      asks[4 * at + 2 + of] = least
    }
    return at
  }
}

const taskOf = (one: IoClass): Task => one.first as Task

const fits = (openings: readonly Opening[], bandwidth: number, size: number): boolean => {
  for (const opening of openings) if (bandwidth <= opening.bandwidth && size <= opening.room) return true
  return false
}
