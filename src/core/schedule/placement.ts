import { timeCost, widthCost } from './width.ts'
import type { Version } from '../data/datum.ts'
import { BlockedTasks } from './blocked-tasks.ts'
import { FreeNodes } from './free-nodes.ts'
import type { IoCore } from '../io/io-core.ts'
import type { Spot } from '../io/storage.ts'
import type { Instruction } from '../instruction.ts'
import { LaneQueues } from './lane-queues.ts'
import { Locality } from './locality.ts'
import { chargeFor, suits } from './machine.ts'
import type { Lane, Node } from './machine.ts'
import type { Policy } from './policy.ts'
import { NodeQueues } from './node-queues.ts'
import type { NodePlacer } from './node-queues.ts'
import { RankedQueue } from './ranked-queue.ts'
import { Ranks } from './ranks.ts'
import { Recency } from './recency.ts'
import { SpreadTasks, findSpread } from './spread-tasks.ts'
import { Reservations } from './reservations.ts'
import { TeamTokens } from './team-tokens.ts'
import { ReadyQueue, before, starved } from './ready-queue.ts'
import type { Placer } from './ready-queue.ts'
import { TimeLeft } from './time-left.ts'
import { isWorthWaiting } from './worth-waiting.ts'
import { demandOf } from '../tasks/demand.ts'
import type { Demand } from '../tasks/demand.ts'
import { Looks } from '../tasks/looks.ts'
import type { Implementation, Task } from '../tasks/task.ts'

/** No task that computes takes less. */
const LEAST = demandOf(0.001, 0, [])

/** What is done with what is decided. */
export interface Orders {
  now: number
  start(task: Task): void
  resume(task: Task): void
  park(task: Task): void
  instruct(instruction: Instruction): void
}

/** Decides which ready task starts next, where, and in which of its implementations. */
export class Placement {
  readonly queue: ReadyQueue | NodeQueues<ReadyQueue>
  /** Tasks that are ready and not in the queue. */
  readonly looks = new Looks()
  /** With several nodes: the same queue. */
  readonly #near: NodeQueues<ReadyQueue> | null
  /** For policies that choose by rank. */
  readonly #ranks: Ranks | null
  readonly tokens: TeamTokens
  readonly lanes: LaneQueues
  readonly blocked: BlockedTasks
  readonly #timeLeft = new TimeLeft()
  readonly #recency = new Recency()
  readonly #nodes: readonly Node[]
  readonly #policy: Policy
  readonly #free: FreeNodes
  /** Lanes whose last task released others, for policies that want those first. */
  #releasing: { node: Node; lane: Lane }[] = []
  readonly #io: IoCore
  #now = 0
  /** Nodes that are being emptied for a task that was overtaken too often. */
  readonly #held = new Reservations()
  readonly #apart = new SpreadTasks()
  /** Of all nodes that are not lost. */
  #cpus: number
  /** Nothing starts or goes on, because a person said so. */
  isPaused = false

  /** `mayGrow`: nodes may join. */
  constructor(
    nodes: readonly Node[],
    policy: Policy,
    io: IoCore,
    sizeOf: (version: Version) => number,
    mayGrow: boolean,
  ) {
    this.#nodes = nodes
    this.#policy = policy
    const { choose } = policy
    this.#ranks = choose ? new Ranks() : null
    const make = (cores: number): ReadyQueue =>
      choose ? new RankedQueue(choose, cores, this.#recency) : new ReadyQueue()
    const isNear = nodes.length > 1 || mayGrow
    this.#near = isNear ? new NodeQueues(nodes, make, policy, new Locality(sizeOf)) : null
    this.#cpus = nodes.reduce((sum, { cpus }) => sum + cpus, 0)
    this.queue = this.#near ?? make(this.#cpus)
    this.tokens = new TeamTokens(nodes, mayGrow)
    this.#free = new FreeNodes(nodes)
    this.#io = io
    this.lanes = new LaneQueues(nodes, io, this.tokens, this.#timeLeft, this.#held)
    this.blocked = new BlockedTasks(nodes, this.#free, io)
    io.storage.onMemory = node => this.#free.update(node)
  }

  /** A task is new in the graph. */
  added(task: Task): void {
    this.lanes.added(task.priority)
    this.#ranks?.added(task)
  }

  /** The task is to run earlier or later than it was said. It may look at all that are ready, so it is for people. */
  prioritize(task: Task, priority: number, isQueued: boolean): void {
    if (isQueued) (task.demand.io ? this.#io.queue : this.queue).withdraw(task)
    task.prioritize(priority)
    this.lanes.added(priority)
    if (isQueued) this.enqueue(task, null)
  }

  /** A task has ended well. */
  record(task: Task, took: number): void {
    this.#timeLeft.record(took)
    this.#near?.locality.used(task)
    if (!this.#ranks) return
    this.#settleRanks()
    this.#recency.used(task)
    const queues = this.#near?.servedBy(task.node) ?? [this.queue]
    for (const queue of queues) if (queue instanceof RankedQueue) queue.record(task, took)
  }

  #settleRanks(): void {
    this.#ranks?.settle((task, before) => {
      if (task.state !== 'ready' || task.demand.io || this.looks.has(task)) return
      const queue = this.#near?.queueOf(task) ?? this.queue
      if (queue instanceof RankedQueue) queue.rose(task, before)
    })
  }

  enqueue(task: Task, releasedBy: Task | null): void {
    task.bypassed = 0
    if (this.#io.concerns(task)) this.#io.ready(task, this.#near?.locality.homeOf(task) ?? null)
    if (task.demand.io) return
    this.queue.push(task)
    this.lanes.ready(task)
    if (this.#policy.successorsFirst && releasedBy && releasedBy.lane >= 0) {
      const node = this.#nodes[releasedBy.node]
      const lane = node?.lanes[releasedBy.lane]
      if (!node || !lane) return
      if (lane.released === null) this.#releasing.push({ node, lane })
      ;(lane.released ??= []).push(task)
    }
  }

  /** There is one node more, the last of the list. */
  joined(node: Node): void {
    this.#cpus += node.cpus
    this.#near?.joined(node)
    this.#free.update(node)
  }

  /** Whether more may be placed on the node, or when it ends, has changed. */
  changed(node: Node): void {
    this.#free.update(node)
    this.#near?.changed(node)
    this.#io.storage.nodeChanged(node)
  }

  /** Nothing more is placed on the node. */
  lose(node: Node): void {
    if (!node.isLost) this.#cpus -= node.cpus
    node.isLost = true
    this.changed(node)
  }

  /** A queued task will not start after all. */
  forget(task: Task): void {
    if (task.demand.io) this.#io.unready(task)
    else this.queue.forget(task)
  }

  decide(orders: Orders): void {
    if (this.isPaused) return
    this.#now = orders.now
    const io = this.#io
    const isIdle = io.isIdle
    if (!isIdle) io.refresh(orders.now)
    this.#decide(orders)
    if (isIdle) return
    const hasMore = io.decide(orders.now, {
      start: task => {
        this.tokens.take(task)
        orders.start(task)
      },
      resume: orders.resume,
      park: task => {
        const busy = this.tokens.busyTeam(task)
        if (!busy) return false
        this.tokens.park(task, busy)
        orders.park(task)
        return true
      },
      instruct: orders.instruct,
    })
    if (hasMore) this.#decide(orders)
  }

  #decide({ start, resume, park }: Orders): void {
    this.blocked.decide(resume)
    if (this.queue.size === 0) return
    this.#settleRanks()
    if (this.#releasing.length > 0) this.#placeSuccessors(start)
    const placeOn = (task: Task, asking: Node | null): boolean => {
      const busy = this.tokens.busyTeam(task)
      if (busy) {
        this.tokens.park(task, busy)
        park(task)
        return false
      }
      const fixed = this.#near?.fixedNode(task)
      const team = this.tokens.node(task)
      if (team) return (fixed || asking === null || asking === team) && this.#place(task, team)
      // The fastest of several implementations may be for another node.
      return this.#place(task, fixed ?? (task.kind.implementations.length > 1 ? null : asking))
    }
    const placer: NodePlacer = {
      place: task => placeOn(task, null),
      next: from => this.#firstFit(LEAST, from),
      at: node => ({ ...placer, place: task => placeOn(task, node) }),
      isHeld: node => this.#held.isClosed(node, this.#now),
      // A task that waits for room on a device must not hold back tasks that make room.
      hold: task => task.io === null && (this.#io.bound?.allows(task) ?? true) && this.#hold(task),
      inTheWay: (started, task) => suits(this.#nodes[started.node] as Node, task),
    }
    for (;;) {
      const task = this.queue.take(placer) ?? this.#firstInOrder(placer)
      if (this.#held.size > 0) this.#held.clear()
      if (!task) return
      start(task)
    }
  }

  /** Where data are bounded, the first task in program order may wait behind one that is held back. */
  #firstInOrder({ place }: Placer): Task | null {
    const first = this.#io.bound?.first()
    if (!first || first.demand.io || first.state !== 'ready') return null
    const isPlaced = place(first)
    // It may have been set aside instead.
    if (isPlaced || (first as Task).state !== 'ready') this.queue.forget(first)
    return isPlaced ? first : null
  }

  /** `isPaused`: it will go on, with the GPUs that it has. */
  release(task: Task, now: number, isPaused = false): void {
    const node = this.#nodes[task.node]
    if (!node || task.demand.io) return
    node.release(task, task.attemptDemand, now, isPaused)
    this.#free.update(node)
    this.#apart.takeBack(task, this.#free)
  }

  /** Each lane that has just become free takes first what its last task released. */
  #placeSuccessors(start: (task: Task) => void): void {
    const releasing = this.#releasing.sort(
      (a, b) => a.node.index - b.node.index || a.lane.index - b.lane.index,
    )
    this.#releasing = []
    for (const { node, lane } of releasing) {
      const [first] = (lane.released ?? []).filter(task => task.state === 'ready').sort(byRank)
      lane.released = null
      if (!first || !lane.free || first.io || first.kind.implementations.length > 1) continue
      if (this.tokens.node(first) || (this.#near?.fixedNode(first) ?? node) !== node) continue
      const fits =
        !this.#io.bound &&
        !this.tokens.busyTeam(first) &&
        node.fitsNow(first.demand) &&
        this.#timeLeft.suffices(first.implementation, node, this.#now)
      if (!fits || !this.#mayGoFirst(first, node)) continue
      this.queue.forget(first)
      this.#occupy(first, node, first.implementation, lane)
      start(first)
    }
  }

  /** Being a successor beats neither a higher priority nor a task that waits too long for a place. */
  #mayGoFirst(first: Task, node: Node): boolean {
    const passed: Task[] = []
    for (const { task } of this.queue.heads()) {
      if (task === first || !before(task, first) || this.tokens.busyTeam(task)) continue
      const inTheWay = suits(node, task)
      if (inTheWay && starved(task)) return false
      const fits = this.#fitsSomewhere(task)
      if (fits && task.priority > first.priority) return false
      if (inTheWay && !fits) passed.push(task)
    }
    for (const task of passed) task.bypassed++
    return true
  }

  #fitsSomewhere({ kind, demand }: Task): boolean {
    return kind.implementations.some(({ demand: own }) => this.#firstFit(own ?? demand) !== null)
  }

  /** The first node that has room now and is not kept for another task, or not yet: for this implementation, or any. */
  #firstFit(
    demand: Demand,
    from = 0,
    only: Node | null = null,
    one: Implementation | null = null,
  ): Node | null {
    if (only) return from <= only.index && this.#admits(only, one) && only.fitsNow(demand) ? only : null
    for (let node = this.#free.next(demand, from); node; node = this.#free.next(demand, node.index + 1)) {
      if (this.#admits(node, one) && node.fitsNow(demand)) return node
    }
    return null
  }

  #admits(node: Node, one: Implementation | null): boolean {
    if (this.#held.size === 0) return true
    return one ? this.#held.admits(node, one, this.#now) : !this.#held.isClosed(node, this.#now)
  }

  /** Keeps the nodes where the task can run for it; true if nothing else may start on any node. */
  #hold(task: Task): boolean {
    const nodes = (this.#near?.nodesFor(task) ?? this.#nodes).filter(node => suits(node, task))
    this.#held.keep(nodes, task, this.#now)
    return (
      this.#held.size === this.#nodes.length &&
      this.#nodes.every(node => this.#held.isClosed(node, this.#now))
    )
  }

  /** Each implementation of a task is tried once; then the fastest that fits is taken. */
  #place(task: Task, only: Node | null): boolean {
    if (this.#io.bound && !this.#io.bound.allows(task)) return false
    if (!only && task.queueable && this.lanes.joinBusyLane(task)) return true
    // Whichever node asks for it: what it reads and writes is on a device there.
    const home = task.io ? this.#nodes[task.io.home ?? -1] : undefined
    if (home && home !== only && this.#place(task, home)) return true
    const { implementations } = task.kind
    let best: Implementation | null = null
    let where: Node | null = null
    let spot: Spot | null = null
    const costOf = task.kind.isMoldable ? widthCost(task, this.#cpus, this.queue.size) : timeCost
    for (const one of implementations) {
      if (best && one.begun > 0 && costOf(one) >= costOf(best)) continue
      const demand = one.demand ?? task.demand
      for (
        let node = this.#firstFit(demand, 0, only, one);
        node;
        node = this.#firstFit(demand, node.index + 1, only, one)
      ) {
        const onNode = task.io && this.#io.findOn(task, node)
        if (task.io && !onNode) continue
        if (node.until < Infinity && !this.#timeLeft.suffices(one, node, this.#now)) continue
        best = one
        where = node
        spot = onNode
        break
      }
      if (best === one && one.begun === 0) break
    }
    if (!best || !where) {
      if (task.demand.spread && this.#nodes.length > 1 && this.#spread(task)) return true
      return !only && task.queueable && this.lanes.joinLane(task, this.queue.size, this.#now)
    }
    if (implementations.length > 1 && isWorthWaiting(task, best, this.#nodes, this.queue.size, this.#now))
      return false
    this.#occupy(task, where, best, null)
    if (spot) this.#io.take(task, spot, this.#now)
    return true
  }

  /** Over several nodes, all CPUs at once. */
  #spread(task: Task): boolean {
    if (this.#held.size > 0 || task.io) return false
    const found = findSpread(task, this.#nodes, (one, node) => this.#timeLeft.suffices(one, node, this.#now))
    if (!found) return false
    const { implementation, first, count } = found
    this.#occupy(task, first, implementation, null, demandOf(count, 0, []))
    this.#apart.lend(task, found, this.#free)
    return true
  }

  #occupy(
    task: Task,
    node: Node,
    implementation: Implementation,
    prefer: Lane | null,
    demand = implementation.demand ?? task.demand,
  ): void {
    implementation.begun++
    task.implementation = implementation
    task.node = node.index
    task.charge = chargeFor(implementation.estimate)
    task.lane = node.occupy(task, demand, prefer).index
    this.#free.update(node)
    this.tokens.take(task)
  }
}

const byRank = (a: Task, b: Task): number => b.priority - a.priority || a.turn - b.turn
