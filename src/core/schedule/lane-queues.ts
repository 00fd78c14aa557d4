import type { IoCore } from '../io/io-core.ts'
import { FORMS } from '../tasks/form.ts'
import type { Implementation, Task } from '../tasks/task.ts'
import { chargeFor, isShare } from './machine.ts'
import type { Lane, Node } from './machine.ts'
import { Recalls } from './recalls.ts'
import type { TeamTokens } from './team-tokens.ts'
import type { TimeLeft } from './time-left.ts'

/**
 * Sends short tasks to lanes that are at work, where they wait behind others: a thread then finds its next task without
 * asking. `recalls` takes back those that wait too long.
 */
export class LaneQueues {
  readonly recalls = new Recalls()
  readonly #nodes: readonly Node[]
  readonly #io: IoCore
  readonly #tokens: TeamTokens
  readonly #timeLeft: TimeLeft
  /** Nodes that are kept for another task. */
  readonly #held: Pick<ReadonlySet<Node>, 'has'>
  /** Priorities of all tasks so far. */
  #highest = -Infinity
  #lowest = Infinity

  constructor(
    nodes: readonly Node[],
    io: IoCore,
    tokens: TeamTokens,
    timeLeft: TimeLeft,
    held: Pick<ReadonlySet<Node>, 'has'>,
  ) {
    this.#nodes = nodes
    this.#io = io
    this.#tokens = tokens
    this.#timeLeft = timeLeft
    this.#held = held
  }

  /** There is a task of this priority. */
  added(priority: number): void {
    if (priority > this.#highest) this.#highest = priority
    if (priority < this.#lowest) this.#lowest = priority
  }

  /** The task has come to the queue of ready tasks: those of lower priority that wait on lanes come after it. */
  ready(task: Task): void {
    if (task.priority > this.#lowest && this.recalls.crowded.size > 0) this.recalls.overtake(task)
  }

  /** Whether the task may wait on a lane behind others: it holds nothing but a CPU, and needs no token. */
  mayQueue(task: Task, queues: boolean): boolean {
    const { kind, demand, accesses } = task
    const { neverQueues, queuesFreely } = FORMS[kind.form]
    if (neverQueues || !(queues || queuesFreely) || task.timed || kind.endsThreads) return false
    if (kind.implementations.length > 1 && kind.implementations.some(hasShare)) return false
    if (demand.cpus !== 1 || demand.memory !== 0 || demand.gpus !== 0 || this.#io.concerns(task)) return false
    for (const access of accesses) {
      if (access.mode === 'commutative' || access.read?.growth) return false
      if (this.#tokens.bindsToNode(access)) return false
    }
    return true
  }

  /** Where there is one node: to look through many for such a lane would take longer than to wake one. */
  joinBusyLane(task: Task): boolean {
    const [node] = this.#nodes
    const { kind, implementation, demand } = task
    if (!node || this.#nodes.length > 1 || kind.implementations.length > 1) return false
    const lane = node.busyLane(kind.form, implementation.estimate)
    if (!lane || this.#held.has(node) || !node.suits(demand)) return false
    this.#push(task, node, lane)
    return true
  }

  /** No lane is free: the task waits on one where little is to be done. `ready` tasks wait for a place. */
  joinLane(task: Task, ready: number, now: number): boolean {
    const { implementation } = task
    if (task.kind.implementations.length > 1) return false
    const perNode = ready / this.#nodes.length
    const isLower = task.priority < this.#highest
    const near = this.#nodes[task.near]
    // What was assigned to a node waits there, behind others, rather than elsewhere.
    for (const node of near?.suits(task.demand) && !near.isPaused ? [near] : this.#nodes) {
      if (this.#held.has(node) || !node.suits(task.demand)) continue
      if (!this.#timeLeft.suffices(implementation, node, now)) continue
      const lane = node.shallowLane(task.kind.form, implementation.estimate, perNode, isLower)
      if (!lane) continue
      this.#push(task, node, lane)
      return true
    }
    return false
  }

  /** A task that waits on its lane behind another is not to run, unless it has begun. */
  cancel(task: Task): void {
    this.recalls.cancel(task, this.#nodes[task.node]?.lanes[task.lane])
  }

  #push(task: Task, node: Node, lane: Lane): void {
    const { implementation } = task
    implementation.begun++
    task.node = node.index
    task.lane = lane.index
    task.charge = chargeFor(implementation.estimate)
    node.push(task, lane)
    if (!node.isCrowded) this.recalls.queued(node)
  }
}

/** It runs beside others and never behind them. */
const hasShare = ({ demand }: Implementation): boolean => demand !== null && isShare(demand.cpus)
