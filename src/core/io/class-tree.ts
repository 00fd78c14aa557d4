import type { Task } from '../task.ts'
import type { IoClass } from './io-queue.ts'
import type { Opening } from './storage.ts'

/** Says which of two tasks of one line is to be tried first; of two tasks, one always is. */
export type TaskOrder = (a: Task, b: Task) => boolean

/**
 * Classes in the order of their first tasks: a treap whose subtrees know the least that any of their classes asks
 * for. So the first class that fits into what is free is found without looking at those that do not.
 */
export class ClassTree {
  #root: IoClass | null = null
  /** The first of all; null if it has to be looked for. */
  #head: IoClass | null = null
  readonly #isBefore: TaskOrder
  /** Weights only have to differ; they come from a sequence, so that a run can be repeated. */
  #seed = 0x9e3779b9

  constructor(isBefore: TaskOrder) {
    this.#isBefore = isBefore
  }

  get isEmpty(): boolean {
    return this.#root === null
  }

  /** No class but one. */
  get isSingle(): boolean {
    return this.#root !== null && !this.#root.left && !this.#root.right
  }

  add(one: IoClass): void {
    this.#seed = (Math.imul(this.#seed, 1664525) + 1013904223) >>> 0
    one.weight = this.#seed
    const isHead = !this.#root || (this.#head && this.#isBefore(one.first as Task, this.#head.first as Task))
    if (isHead) this.#head = one
    this.#root = this.#insert(this.#root, one)
  }

  /** The class must have the same first task as when it was added. */
  delete(one: IoClass): void {
    if (this.#head === one) this.#head = null
    this.#root = this.#remove(this.#root, one)
  }

  /** The first class after a task that fits into one of the openings; null stands for no condition. */
  first(after: Task | null, openings: readonly Opening[] | null): IoClass | null {
    const head = this.#head
    // All others come after the first: their tasks need not be looked at.
    if (after && openings && after === head?.first && !fits(openings, head.bandwidth, head.size)) {
      return this.#find(this.#root, null, openings)
    }
    if (after || openings) return this.#find(this.#root, after, openings)
    return (this.#head ??= this.#find(this.#root, null, null))
  }

  #find(at: IoClass | null, after: Task | null, openings: readonly Opening[] | null): IoClass | null {
    if (!at) return null
    if (openings && !fits(openings, at.leastBandwidth, at.leastSize)) return null
    if (after && !this.#isBefore(after, at.first as Task)) return this.#find(at.right, after, openings)
    const left = this.#find(at.left, after, openings)
    if (left) return left
    if (!openings || fits(openings, at.bandwidth, at.size)) return at
    return this.#find(at.right, null, openings)
  }

  #insert(at: IoClass | null, one: IoClass): IoClass {
    if (!at) return summed(one, null, null)
    const { left, right, weight } = at
    if (one.weight > weight) {
      const [lower, upper] = this.#split(at, one.first as Task)
      return summed(one, lower, upper)
    }
    return this.#isBefore(one.first as Task, at.first as Task)
      ? summed(at, this.#insert(left, one), right)
      : summed(at, left, this.#insert(right, one))
  }

  #split(at: IoClass | null, by: Task): [IoClass | null, IoClass | null] {
    if (!at) return [null, null]
    const { left, right } = at
    if (this.#isBefore(by, at.first as Task)) {
      const [lower, upper] = this.#split(left, by)
      return [lower, summed(at, upper, right)]
    }
    const [lower, upper] = this.#split(right, by)
    return [summed(at, left, lower), upper]
  }

  #remove(at: IoClass | null, one: IoClass): IoClass | null {
    if (!at) return null
    const { left, right } = at
    if (at === one) return joined(left, right)
    return this.#isBefore(one.first as Task, at.first as Task)
      ? summed(at, this.#remove(left, one), right)
      : summed(at, left, this.#remove(right, one))
  }
}

const fits = (openings: readonly Opening[], bandwidth: number, size: number): boolean => {
  for (const opening of openings) if (bandwidth <= opening.bandwidth && size <= opening.room) return true
  return false
}

function joined(lower: IoClass | null, upper: IoClass | null): IoClass | null {
  if (!lower) return upper
  if (!upper) return lower
  return lower.weight > upper.weight
    ? summed(lower, lower.left, joined(lower.right, upper))
    : summed(upper, joined(lower, upper.left), upper.right)
}

function summed(at: IoClass, left: IoClass | null, right: IoClass | null): IoClass {
  at.left = left
  at.right = right
  let { bandwidth, size } = at
  if (left) {
    bandwidth = Math.min(bandwidth, left.leastBandwidth)
    size = Math.min(size, left.leastSize)
  }
  if (right) {
    bandwidth = Math.min(bandwidth, right.leastBandwidth)
    size = Math.min(size, right.leastSize)
  }
  at.leastBandwidth = bandwidth
  at.leastSize = size
  return at
}
