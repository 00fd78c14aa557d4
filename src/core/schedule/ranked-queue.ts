import { Heap } from '../../general/heap.ts'
import type { Choose } from './policy.ts'
import { RankTree } from './rank-tree.ts'
import { Recency } from './recency.ts'
import { ReadyQueue, classOf } from './ready-queue.ts'
import type { Head } from './ready-queue.ts'
import type { Task } from '../tasks/task.ts'

/** The freshest inputs first; then the last in, as the paper has it. */
const lastFirst = (a: Task, b: Task): boolean => (a.score === b.score ? a.turn > b.turn : a.score > b.score)

/** Ready tasks of one class of demand and one priority: the last in, and the last in of each rank. */
class Level {
  readonly #last = new Heap(lastFirst)
  readonly #byRank = new Map<number, Heap<Task>>()
  readonly ranks = new RankTree()
  readonly #priority: number

  constructor(priority: number) {
    this.#priority = priority
  }

  push(task: Task): void {
    this.#last.push(task)
    this.pushRank(task)
  }

  pushRank(task: Task): void {
    let heap = this.#byRank.get(task.rank)
    if (!heap) this.#byRank.set(task.rank, (heap = new Heap(lastFirst)))
    heap.push(task)
    this.ranks.add(task.rank, 1)
  }

  /** Of this rank if there is one, else of the highest; null: the last in of all. */
  best(rank: number | null): Task | undefined {
    // A task whose priority has changed is in another level by now.
    const isHere = (task: Task): boolean => task.state === 'ready' && task.priority === this.#priority
    if (rank === null) return peek(this.#last, isHere)
    const at = this.ranks.count(rank) > 0 ? rank : this.ranks.highest
    const heap = this.#byRank.get(at)
    if (!heap) return undefined
    const found = peek(heap, task => isHere(task) && task.rank === at)
    if (heap.size === 0) this.#byRank.delete(at)
    return found
  }
}

/** Entries of tasks that were taken by another way stay until they come to the top. */
function peek(heap: Heap<Task>, isValid: (task: Task) => boolean): Task | undefined {
  let task = heap.peek()
  while (task && !isValid(task)) {
    heap.pop()
    task = heap.peek()
  }
  return task
}

interface RankedClass {
  levels: Map<number, Level>
  priorities: Heap<number>
}

/**
 * Ready tasks for policies that choose by rank at the moment of taking. How many there are of a rank counts
 * over all classes of demand, within one priority.
 */
export class RankedQueue extends ReadyQueue {
  readonly #choose: Choose
  readonly #cores: number
  readonly #ranked = new Map<object, RankedClass[]>()
  readonly #all = new Map<number, RankTree>()
  readonly #times: { mean: number; count: number }[] = []
  readonly #recency: Recency
  #meanTime = 0
  #timed = 0
  #random = 0x2545f491
  /** The choice for which heads were looked for was by chance. */
  #isByChance = false

  constructor(choose: Choose, cores: number, recency = new Recency()) {
    super()
    this.#recency = recency
    this.#choose = choose
    this.#cores = cores
  }

  override push(task: Task): void {
    task.score = this.#recency.of(task)
    this.size++
    this.#count(task, task.rank, 1)
    const key = classOf(task)
    let classes = this.#ranked.get(key)
    if (!classes) this.#ranked.set(key, (classes = [newClass(), newClass()]))
    const { levels, priorities } = classes[task.queueable ? 0 : 1] as RankedClass
    let level = levels.get(task.priority)
    if (!level) {
      levels.set(task.priority, (level = new Level(task.priority)))
      priorities.push(task.priority)
    }
    level.push(task)
  }

  override forget(task: Task): void {
    super.forget(task)
    this.#drop(task)
  }

  /** Its entries stay until they come to the top of their level, and count for nothing there. */
  override withdraw(task: Task): void {
    this.forget(task)
  }

  /** The rank of a ready task rose. */
  rose(task: Task, before: number): void {
    this.#count(task, before, -1)
    this.#count(task, task.rank, 1)
    const level = this.#levelOf(task)
    level?.ranks.add(before, -1)
    level?.pushRank(task)
  }

  /** A task of this rank took so long: the weight of a rank is the inverse of the mean of its tasks. */
  record({ rank, priority }: Task, milliseconds: number): void {
    const took = Math.max(milliseconds, 0.001)
    const time = (this.#times[rank] ??= { mean: 0, count: 0 })
    time.mean += (took - time.mean) / ++time.count
    this.#meanTime += (took - this.#meanTime) / ++this.#timed
    this.#all.get(priority)?.setWeight(rank, 1 / time.mean)
  }

  override heads(): Head[] {
    const heads: Head[] = []
    this.#isByChance = false
    const choices = new Map<number, number | null>()
    for (const [key, classes] of this.#ranked) {
      let isEmpty = true
      for (const one of classes) if (this.#addHead(heads, one, choices)) isEmpty = false
      if (isEmpty && this.#ranked.size > 64) this.#ranked.delete(key)
    }
    if (heads.length > 1) heads.sort((a, b) => this.#compare(a.task, b.task, choices))
    return heads
  }

  protected override remove(head: Head): void {
    super.remove(head)
    // The same chance until it led to a start: how often it was asked in vain must not matter.
    if (this.#isByChance) this.#random = next(this.#random)
    this.#drop(head.task)
  }

  #addHead(heads: Head[], { levels, priorities }: RankedClass, choices: Map<number, number | null>): boolean {
    for (let priority = priorities.peek(); priority !== undefined; priority = priorities.peek()) {
      const level = levels.get(priority) as Level
      if (level.ranks.size > 0) {
        if (!choices.has(priority)) choices.set(priority, this.#choice(priority))
        const task = level.best(choices.get(priority) as number | null)
        if (task) heads.push({ task, queue: null })
        return task !== undefined
      }
      levels.delete(priority)
      priorities.pop()
    }
    return false
  }

  #choice(priority: number): number | null {
    const ranks = this.#all.get(priority) as RankTree
    const { highest } = ranks
    return this.#choose({
      cores: this.#cores,
      size: ranks.size,
      highest,
      atHighest: ranks.count(highest),
      // Without a measurement all weigh the same.
      pick: () => {
        this.#isByChance = true
        const random = (next(this.#random) >>> 0) / 2 ** 32
        return ranks.pick(random, this.#timed === 0 ? 1 : 1 / this.#meanTime)
      },
    })
  }

  #compare(a: Task, b: Task, choices: Map<number, number | null>): number {
    if (a.priority !== b.priority) return b.priority - a.priority
    const rank = choices.get(a.priority) ?? null
    if (rank !== null && a.rank !== b.rank) {
      if (a.rank === rank || b.rank === rank) return a.rank === rank ? -1 : 1
      return b.rank - a.rank
    }
    return lastFirst(a, b) ? -1 : 1
  }

  #drop(task: Task): void {
    this.#count(task, task.rank, -1)
    this.#levelOf(task)?.ranks.add(task.rank, -1)
  }

  #count({ priority }: Task, rank: number, count: number): void {
    let tree = this.#all.get(priority)
    if (!tree) {
      this.#all.set(priority, (tree = new RankTree()))
      for (const [at, time] of this.#times.entries()) if (time) tree.setWeight(at, 1 / time.mean)
    }
    tree.add(rank, count)
    if (tree.size === 0 && this.#all.size > 64) this.#all.delete(priority)
  }

  #levelOf(task: Task): Level | undefined {
    return this.#ranked.get(classOf(task))?.[task.queueable ? 0 : 1]?.levels.get(task.priority)
  }
}

/** The same in each run, so that a run can be made again and a simulation says what a run does. */
function next(random: number): number {
  let at = random
  at ^= at << 13
  at ^= at >>> 17
  return at ^ (at << 5)
}

const newClass = (): RankedClass => ({ levels: new Map(), priorities: new Heap((a, b) => a > b) })
