import type { Task } from '../task.ts'
import type { IoClass } from './io-queue.ts'
import type { Opening } from './storage.ts'

/** Says which of two tasks of one line is to be tried first; of two tasks, one always is. */
export type TaskOrder = (a: Task, b: Task) => boolean

/** What a class has as a part of its tree. */
export interface TreeLinks {
  left: IoClass | null
  right: IoClass | null
  weight: number
  /** The least that any class of the subtree asks for. */
  leastBandwidth: number
  leastSize: number
}

/**
 * Classes in the order of their first tasks: a treap whose subtrees know the least that any of their classes asks
 * for. So the first class that fits into what is free is found without looking at those that do not.
 */
export class ClassTree {
  #root: IoClass | null = null
  readonly #isBefore: TaskOrder
  /** Weights only have to differ; they come from a sequence, so that a run can be repeated. */
  #seed = 0x9e3779b9

  constructor(isBefore: TaskOrder) {
    this.#isBefore = isBefore
  }

  get isEmpty(): boolean {
    return this.#root === null
  }

  add(one: IoClass): void {
    this.#seed = (Math.imul(this.#seed, 1664525) + 1013904223) >>> 0
    one.links.weight = this.#seed
    this.#root = this.#insert(this.#root, one)
  }

  /** The class must have the same first task as when it was added. */
  delete(one: IoClass): void {
    this.#root = this.#remove(this.#root, one)
  }

  /** The first class after a task that fits into one of the openings; null stands for no condition. */
  first(after: Task | null, openings: readonly Opening[] | null): IoClass | null {
    return this.#find(this.#root, after, openings)
  }

  #find(at: IoClass | null, after: Task | null, openings: readonly Opening[] | null): IoClass | null {
    if (!at) return null
    const { links } = at
    if (openings && !fits(openings, links.leastBandwidth, links.leastSize)) return null
    if (after && !this.#isBefore(after, at.first as Task)) return this.#find(links.right, after, openings)
    const left = this.#find(links.left, after, openings)
    if (left) return left
    if (!openings || fits(openings, at.bandwidth, at.size)) return at
    return this.#find(links.right, null, openings)
  }

  #insert(at: IoClass | null, one: IoClass): IoClass {
    if (!at) return summed(one, null, null)
    const { left, right, weight } = at.links
    if (one.links.weight > weight) {
      const [lower, upper] = this.#split(at, one.first as Task)
      return summed(one, lower, upper)
    }
    return this.#isBefore(one.first as Task, at.first as Task)
      ? summed(at, this.#insert(left, one), right)
      : summed(at, left, this.#insert(right, one))
  }

  #split(at: IoClass | null, by: Task): [IoClass | null, IoClass | null] {
    if (!at) return [null, null]
    const { left, right } = at.links
    if (this.#isBefore(by, at.first as Task)) {
      const [lower, upper] = this.#split(left, by)
      return [lower, summed(at, upper, right)]
    }
    const [lower, upper] = this.#split(right, by)
    return [summed(at, left, lower), upper]
  }

  #remove(at: IoClass | null, one: IoClass): IoClass | null {
    if (!at) return null
    const { left, right } = at.links
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
  return lower.links.weight > upper.links.weight
    ? summed(lower, lower.links.left, joined(lower.links.right, upper))
    : summed(upper, joined(lower, upper.links.left), upper.links.right)
}

function summed(at: IoClass, left: IoClass | null, right: IoClass | null): IoClass {
  const { links } = at
  links.left = left
  links.right = right
  let { bandwidth, size } = at
  if (left) {
    bandwidth = Math.min(bandwidth, left.links.leastBandwidth)
    size = Math.min(size, left.links.leastSize)
  }
  if (right) {
    bandwidth = Math.min(bandwidth, right.links.leastBandwidth)
    size = Math.min(size, right.links.leastSize)
  }
  links.leastBandwidth = bandwidth
  links.leastSize = size
  return at
}
