import { pathIn } from '../data/datum.ts'
import { FORMS } from '../tasks/form.ts'
import type { Task } from '../tasks/task.ts'
import type { ReturnWhy } from '../why.ts'
import type { Lane, Node } from './machine.ts'

/** Take these tasks back from their lanes, except those that have begun; `returned` with `why`, or `kept`, answers. */
export interface RecallInstruction {
  type: 'recall'
  tasks: readonly Task[]
  why: ReturnWhy
}

/** A lane where no CPU is free for those that wait counts as silent only then: on a busy machine short tasks take long, too. */
const SILENT_ON_BUSY_NODE = 100
/** Lanes on which tasks wait should be looked at this often, in milliseconds, so that silent ones are found. */
export const LOOK_AT_LANES = 10
/** A task is not asked back twice within this many milliseconds. */
const ASK_AGAIN = 10
/** This many milliseconds of expected work behind the task that runs are worth moving to another CPU. */
const WORTH_MOVING = 1

/**
 * Short tasks are sent to a lane ahead of time and wait there. Some should not: those behind a task that turned out to be
 * long, those that another CPU could run now, and those that are cancelled. This decides which are called back.
 */
export class Recalls {
  /** Nodes on which tasks may wait on a lane behind another. */
  readonly crowded = new Set<Node>()
  /** To be called back by the next decision. */
  readonly #cancelled = new Set<Task>()
  readonly #stuck = new Set<Task>()
  readonly #overtaken = new Set<Task>()
  readonly #asked = new Set<Task>()
  #askedSince = 0

  /** A task was sent to a lane on which another one runs. */
  queued(node: Node): void {
    node.isCrowded = true
    this.crowded.add(node)
  }

  /** The task is not to run, unless it has begun. */
  cancel(task: Task, lane: Lane | undefined): void {
    if (lane && lane.queue.peek() !== task && !hasFiles(task)) {
      this.#cancelled.add(task)
      this.#stuck.delete(task)
    }
  }

  /** A ready task comes before those of lower priority that wait on lanes: it begins when any of those that run has ended. */
  overtake({ priority, demand }: Task): void {
    for (const node of this.crowded) {
      if (!node.suits(demand)) continue
      for (const { queue } of node.lanes) {
        if (queue.size < 2) continue
        const [, ...behind] = queue
        for (const task of behind) {
          if (task.priority < priority && !this.#cancelled.has(task)) this.#overtaken.add(task)
        }
      }
    }
  }

  /** Returns whether the task that runs on the lane takes longer than expected. */
  silent(node: Node, lane: Lane, now: number): boolean {
    const head = lane.queue.peek()
    if (!head) return false
    const silence = now - Math.max(lane.lastEnd, head.since)
    if (silence < FORMS[head.kind.form].silent) return false
    if (lane.queue.size > 1 && (node.freeLanes > 0 || silence >= SILENT_ON_BUSY_NODE)) {
      lane.long = head
      for (const task of lane.queue) if (task !== head && !this.#cancelled.has(task)) this.#stuck.add(task)
    }
    return true
  }

  /** These stay where they are for now; they may be asked back again at once. */
  kept(tasks: readonly Task[]): void {
    for (const task of tasks) this.#asked.delete(task)
  }

  /** `isQuiet`: nothing else is to be done, so no other task comes for the lanes that are idle. */
  decide(now: number, isQuiet: boolean, instruct: (recall: RecallInstruction) => void): void {
    const isNoneAsked = this.#cancelled.size + this.#stuck.size + this.#overtaken.size === 0
    if (this.#cancelled.size > 0) this.#recallAll(this.#cancelled, { kind: 'cancelled' }, instruct)
    if (this.#stuck.size > 0) this.#recallAll(this.#stuck, { kind: 'behind-long-task' }, instruct)
    if (this.#overtaken.size > 0) this.#recallAll(this.#overtaken, { kind: 'higher-priority' }, instruct)
    if (!isQuiet || !isNoneAsked || this.crowded.size === 0) return
    if (now - this.#askedSince >= ASK_AGAIN) {
      this.#asked.clear()
      this.#askedSince = now
    }
    for (const node of this.crowded) {
      if (node.freeLanes === 0 && node.claims === 0) continue
      const tasks = misplaced(node).filter(task => !this.#asked.has(task))
      for (const task of tasks) this.#asked.add(task)
      this.#recall(tasks, { kind: 'cpu-is-free' }, instruct)
      if (tasks.length === 0) this.#uncrowd(node)
    }
  }

  /** Forgets nodes on whose lanes no task waits any more. */
  prune(): void {
    for (const node of this.crowded) this.#uncrowd(node)
  }

  #uncrowd(node: Node): void {
    if (node.lanes.some(lane => lane.queue.size > 1 && lane.shared === 0)) return
    node.isCrowded = false
    this.crowded.delete(node)
  }

  #recallAll(tasks: Set<Task>, why: ReturnWhy, instruct: (recall: RecallInstruction) => void): void {
    this.#recall([...tasks], why, instruct)
    tasks.clear()
  }

  #recall(tasks: readonly Task[], why: ReturnWhy, instruct: (recall: RecallInstruction) => void): void {
    const waiting = tasks.filter(task => task.state === 'running')
    if (waiting.length > 0) instruct({ type: 'recall', tasks: waiting, why })
  }
}

/** Files are made ready for one attempt: that is not done again to gain a few milliseconds. */
const hasFiles = ({ accesses }: Task): boolean => accesses.some(access => pathIn(access) !== null)

/**
 * What waits on a lane although another one is idle, or although a blocked task waits for it. Where a task with several CPUs
 * is next, it has them sooner so. For each idle lane it is half of what waits on another, of each the last first.
 */
function misplaced(node: Node): Task[] {
  const found: Task[] = []
  const full = node.lanes.filter(lane => waitingOn(lane) >= WORTH_MOVING)
  if (full.length > node.freeLanes) full.sort((a, b) => b.load - a.load)
  full.forEach((lane, rank) => {
    const behind = lane.queue.size - 1
    const isWanted = lane.resuming.size > 0
    const count = isWanted ? behind : rank < node.freeLanes ? Math.ceil(behind / 2) : 0
    for (const task of [...lane.queue].slice(1 + behind - count).reverse()) {
      if (task.state !== 'running' || hasFiles(task)) continue
      if (isWanted || node.fitsNow(task.demand)) found.push(task)
    }
  })
  return found
}

/** Milliseconds of work that may move, and is expected behind the one that runs. */
function waitingOn({ queue, load, shared }: Lane): number {
  const head = queue.size > 1 && shared === 0 ? queue.peek() : undefined
  return head && FORMS[head.kind.form].queuesFreely ? load - head.charge : 0
}
