import { Deque } from '../../general/deque.ts'
import type { IoNodeDescription } from '../io/io-node.ts'
import type { Demand, Spread } from '../tasks/demand.ts'
import { FORMS } from '../tasks/form.ts'
import type { Form } from '../tasks/form.ts'
import type { Task, TaskSpec } from '../tasks/task.ts'
import { chooseLanes } from './choose-lanes.ts'
import { Gpus } from './gpus.ts'

export interface NodeDescription extends IoNodeDescription {
  name: string
  cpus: number
  /** Bytes that tasks may claim by `memory`. */
  memory: number
  tags: readonly string[]
  /** The ids by which programs know its GPUs. */
  gpus?: readonly string[]
  /** The ranks of one MPI task can be on several nodes that have this. */
  sharesRanks?: boolean
  /** The memory (NUMA) domain of each CPU, by lane, where there are several. */
  domains?: readonly number[]
  /** It sees no files of others: those of its tasks are brought there. */
  isApart?: boolean
}

/**
 * One CPU of a node. Tasks that are known to be short may queue on a lane behind each other: they still
 * run one at a time, but the thread behind the lane does not have to ask for each of them.
 */
export class Lane {
  readonly index: number
  /** The tasks sent to this lane, the running one first. */
  readonly queue = new Deque<Task>()
  /** Milliseconds of work that the queue is expected to hold. */
  load = 0
  /** When a task last ended here, or gave the lane back. */
  lastEnd = 0
  /** Held by a task with several CPUs whose own lane is another one. */
  lentTo: Task | null = null
  /** Thousandths that tasks with a share of a CPU have of it; they run at the same time. */
  shared = 0
  /** Turned out to be long: while it runs here, no task queues behind it. */
  long: Task | null = null
  /** Blocked tasks whose thread is behind this lane, and that could go on. */
  readonly resuming = new Deque<Task>()
  /** Tasks made ready by the task that ended here last, for policies that want them first. */
  released: Task[] | null = null

  constructor(index: number) {
    this.index = index
  }

  get idle(): boolean {
    return this.queue.size === 0 && this.lentTo === null
  }

  /** At work, so that what is of this form may queue behind what is there. */
  takes(form: Form): boolean {
    if (this.lentTo || this.shared > 0 || this.queue.size === 0 || this.queue.size >= LANE_DEPTH) return false
    const head = this.queue.peek()
    return this.resuming.size === 0 && head !== this.long && head?.kind.form === form
  }

  /** Idle, and no blocked task has an older claim to it. */
  get free(): boolean {
    return this.idle && this.resuming.size === 0
  }
}

/** Milliseconds of brief tasks that a lane holds while enough are left for all lanes to the end; fewer below others in priority. */
const BRIEF_LOAD = 30
const BRIEF_LOAD_BELOW = 10
export const LANE_DEPTH = 1024
/** Functions that take no longer than it takes to start them on a thread, and how much of them a lane does before another helps. */
const TINY = 0.005
const HANDFUL = 0.5

const wholeUnits = (cpus: number, unit: number): number => Math.floor(cpus / unit) * unit

/** Shares are counted in thousandths, so that three thirds are a whole. */
const WHOLE = 1000
/** A part of a CPU; I/O tasks ask for none at all. */
export const isShare = (cpus: number): boolean => cpus > 0 && cpus < 1
const shareOf = (cpus: number): number => Math.max(1, Math.floor(cpus * WHOLE))

export class Node {
  readonly index: number
  readonly name: string
  readonly cpus: number
  readonly memory: number
  readonly tags: ReadonlySet<string>
  readonly lanes: Lane[]
  readonly gpus: Gpus
  readonly sharesRanks: boolean
  /** The nodes over which the ranks of a task can be spread, this one among them. */
  readonly #peers: readonly Node[]
  readonly isApart: boolean
  readonly #domains: readonly number[] | null
  /** Tasks with a share of a CPU. */
  #shares = 0
  /** The loads of all lanes. */
  #load = 0
  /** No lane before this one is idle. */
  #firstIdle = 0
  /** The lane that is looked at first for the next short task. */
  #turn = 0
  freeMemory: number
  freeLanes: number
  /** Gone for good. */
  isLost = false
  /** Nothing more starts here for now: nothing is heard of it, or it is to be given back. */
  isPaused = false
  /** When it ends by itself. Nothing is started that is expected to take longer. */
  until = Infinity
  /** Blocked tasks that could go on and wait for their lane. */
  claims = 0
  /** Tasks may wait on a lane behind another; see `Recalls`. */
  isCrowded = false

  /** `all`: the nodes of the run, which may grow. */
  constructor(index: number, description: NodeDescription, all: readonly Node[] = []) {
    this.index = index
    this.sharesRanks = description.sharesRanks === true
    this.#peers = this.sharesRanks ? all : []
    this.name = description.name
    this.cpus = description.cpus
    this.memory = description.memory
    this.tags = new Set(description.tags)
    this.lanes = Array.from({ length: description.cpus }, (_, i) => new Lane(i))
    this.gpus = new Gpus(description.gpus ?? [])
    this.isApart = description.isApart ?? false
    this.#domains = description.domains ?? null
    this.freeMemory = description.memory
    this.freeLanes = description.cpus
  }

  /** Could ever run it, were it idle. */
  suits(demand: Demand): boolean {
    return !this.isLost && this.isLargeEnough(demand)
  }

  isLargeEnough(demand: Demand): boolean {
    const { cpus, memory, tags, gpus } = demand
    const most = demand.spread ? this.#mostSpread(demand) : this.cpus
    if (cpus > most || memory > this.memory || gpus > this.gpus.count) return false
    return tags.every(tag => this.tags.has(tag))
  }

  /** CPUs that the task could have together, here and on other nodes, were they idle. */
  #mostSpread({ spread, memory, gpus, tags }: Demand): number {
    const { unit, perNode } = spread as Spread
    const on = (node: Node): number =>
      tags.every(tag => node.tags.has(tag)) ? wholeUnits(Math.min(node.cpus, perNode), unit) : 0
    // What is more than CPUs has to be on one node.
    if (!this.sharesRanks || memory > 0 || gpus > 0) return on(this)
    let sum = 0
    for (const node of this.#peers) if (node.sharesRanks && !node.isLost) sum += on(node)
    return Math.max(on(this), sum)
  }

  /** How many of the CPUs that a task over several nodes wants could be here now. */
  roomFor(demand: Demand, left: number): number {
    const { spread, tags } = demand
    if (!spread || !this.sharesRanks || this.isLost || this.isPaused || this.claims > 0) return 0
    if (!tags.every(tag => this.tags.has(tag))) return 0
    return wholeUnits(Math.min(this.freeLanes, spread.perNode, left), spread.unit)
  }

  /** CPUs for a task that is on another node. */
  lend(task: Task, count: number): void {
    for (const lane of chooseLanes(this.lanes, this.#domains, count, null)) lane.lentTo = task
    this.freeLanes -= count
  }

  lanesLentTo(task: Task): number {
    return this.lanes.filter(({ lentTo }) => lentTo === task).length
  }

  takeBack(task: Task): void {
    for (const lane of this.lanes) {
      if (lane.lentTo !== task) continue
      lane.lentTo = null
      this.#becameIdle(lane)
      this.freeLanes++
    }
  }

  /** `freeLanes` also counts idle lanes that a blocked task waits for: those are not for new tasks. */
  fitsNow(demand: Demand): boolean {
    const isShared = demand.cpus > this.freeLanes && this.#sharedLane(demand.cpus) !== null
    if (demand.cpus > this.freeLanes && !isShared) return false
    if (demand.memory > this.freeMemory || !this.suits(demand) || this.isPaused) return false
    if (demand.spread && demand.cpus > demand.spread.perNode) return false
    if (demand.gpus > 0 && !this.gpus.fits(demand.gpus)) return false
    if (this.claims === 0) return true
    const { lanes, memory } = this.#reserved()
    let free = -lanes
    for (const lane of this.lanes) if (lane.free) free++
    return (isShared || demand.cpus <= free) && demand.memory <= Math.max(0, this.freeMemory - memory)
  }

  /** What blocked tasks need beside their lane, which is idle: new tasks must not take it for ever. */
  #reserved(): { lanes: number; memory: number } {
    let lanes = 0
    let memory = 0
    for (const lane of this.lanes) {
      const task = lane.idle ? lane.resuming.peek() : undefined
      if (!task) continue
      const demand = task.attemptDemand
      lanes += Math.max(0, demand.cpus - 1)
      memory += demand.memory
    }
    return { lanes, memory }
  }

  canResume(task: Task, demand: Demand): boolean {
    const lane = this.lanes[task.lane] as Lane
    if (demand.memory > this.freeMemory) return false
    if (lane.shared > 0 && isShare(demand.cpus)) return lane.shared + shareOf(demand.cpus) <= WHOLE
    return lane.idle && demand.cpus <= this.freeLanes
  }

  /** The task goes to the end of the lane's queue. */
  push(task: Task, lane: Lane): void {
    lane.queue.push(task)
    lane.load += task.charge
    this.#load += task.charge
  }

  /**
   * A lane on which a task of this form that takes so long may queue, or null: one after the other, those that are loaded above
   * average last. Only tasks of one form queue together. `ready` tasks wait for a place. What comes after tasks of higher priority does not fill lanes, where these
   * would have to wait behind it.
   */
  shallowLane(form: Form, milliseconds: number, ready: number, isLower: boolean): Lane | null {
    const traits = FORMS[form]
    const short = milliseconds < traits.short
    if (!short && milliseconds >= traits.brief) return null
    let best: Lane | null = null
    const most = isLower ? 1 : Math.max(1, ready / (2 * this.cpus))
    const limit = isLower ? BRIEF_LOAD_BELOW : BRIEF_LOAD
    if (this.isPaused) return null
    if (this.claims > 0 && this.#reserved().lanes > 0) return null
    const average = this.#load / this.cpus
    for (let i = 0; i < this.cpus; i++) {
      const lane = this.lanes[this.#turn] as Lane
      this.#turn = this.#turn + 1 < this.cpus ? this.#turn + 1 : 0
      if (!lane.takes(form)) continue
      const isDeep = lane.queue.size <= most && lane.load < limit
      // Where those before it are not as short, what is short waits as they do: all wait behind it otherwise.
      const hasRoom =
        (isDeep && (!short || lane.load > traits.short * lane.queue.size)) ||
        (short && lane.load < traits.laneLoad)
      if (!hasRoom) continue
      if (lane.load <= average) return lane
      if (!best || lane.load < best.load) best = lane
    }
    return best
  }

  /**
   * A lane that is at work on so little that to wake another one for a task this short would take longer than to wait. The
   * first of them, so that as few threads as can do it are kept busy with such tasks.
   */
  busyLane(form: Form, milliseconds: number): Lane | null {
    if (!isTiny(milliseconds) || this.claims > 0 || this.isPaused) return null
    return this.lanes.find(lane => lane.load < HANDFUL && lane.takes(form)) ?? null
  }

  /** Some lane is shared and has room for more. */
  get hasSharedRoom(): boolean {
    return this.#shares > 0 && this.lanes.some(lane => lane.shared > 0 && lane.shared < WHOLE)
  }

  /** For a share of a CPU: the shared lane with the least left that has enough, and that no blocked task waits for. */
  #sharedLane(cpus: number): Lane | null {
    if (this.#shares === 0 || !isShare(cpus)) return null
    let best: Lane | null = null
    for (const lane of this.lanes) {
      if (lane.shared === 0 || lane.resuming.size > 0 || lane.shared + shareOf(cpus) > WHOLE) continue
      if (!best || lane.shared > best.shared) best = lane
    }
    return best
  }

  #occupyShare(task: Task, demand: Demand, prefer: Lane | null): Lane {
    const lane = prefer ?? this.#sharedLane(demand.cpus) ?? this.#freeLane()
    if (lane.shared === 0) this.freeLanes--
    lane.shared += shareOf(demand.cpus)
    lane.queue.push(task)
    this.#shares++
    this.freeMemory -= demand.memory
    if (demand.gpus > 0) this.gpus.take(task, demand.gpus)
    return lane
  }

  /** The first free lane, without a look at those before it that are known to be at work. */
  #freeLane(): Lane {
    // While blocked tasks wait for lanes, idle ones are passed over, and must be found later.
    if (this.claims > 0) return this.lanes.find(one => one.free) as Lane
    let at = this.#firstIdle
    while (at < this.cpus && !(this.lanes[at] as Lane).idle) at++
    this.#firstIdle = at
    return this.lanes[at] as Lane
  }

  /** Its lane is idle now. */
  #becameIdle({ index }: Lane): void {
    if (index < this.#firstIdle) this.#firstIdle = index
  }

  occupy(task: Task, demand: Demand, prefer: Lane | null): Lane {
    if (isShare(demand.cpus)) return this.#occupyShare(task, demand, prefer)
    const wide = demand.cpus > 1 ? chooseLanes(this.lanes, this.#domains, demand.cpus, prefer) : null
    const lane = prefer ?? wide?.[0] ?? this.#freeLane()
    this.push(task, lane)
    this.freeLanes--
    if (wide) {
      for (const other of wide) if (other !== lane) other.lentTo = task
      this.freeLanes -= demand.cpus - 1
    }
    this.freeMemory -= demand.memory
    if (demand.gpus > 0) this.gpus.take(task, demand.gpus)
    return lane
  }

  release(task: Task, demand: Demand, now: number, isPaused = false): void {
    const lane = this.lanes[task.lane] as Lane
    if (lane.queue.peek() === task) {
      lane.queue.shift()
      lane.lastEnd = now
    } else if (lane.queue.peekLast() === task) lane.queue.pop()
    else lane.queue.remove(task)
    const before = lane.load
    lane.load = lane.queue.size === 0 || lane.shared > 0 ? 0 : before - task.charge
    this.#load += lane.load - before
    if (lane.queue.size === 0) {
      this.#becameIdle(lane)
      if (++this.freeLanes === this.cpus) this.#load = 0
    }
    if (isShare(demand.cpus)) {
      lane.shared -= shareOf(demand.cpus)
      this.#shares--
    }
    if (demand.cpus > 1) this.takeBack(task)
    this.freeMemory += demand.memory
    // A task that waits for others goes on with the same ones.
    if (demand.gpus > 0 && !isPaused) this.gpus.giveBack(task)
  }
}

/** The nodes of a run; each knows the others. */
export function nodesOf(descriptions: readonly NodeDescription[]): Node[] {
  const nodes: Node[] = []
  for (const one of descriptions) nodes.push(new Node(nodes.length, one, nodes))
  return nodes
}

export const isShort = (milliseconds: number, form: Form): boolean => milliseconds < FORMS[form].short

export const isTiny = (milliseconds: number): boolean => milliseconds < TINY

/** A lane is never charged less than this, so that the queue's depth stays bounded for empty tasks. */
export const chargeFor = (milliseconds: number): number => Math.max(milliseconds, 0.002)

/** Whether an implementation of the task could run on the node, were that idle. */
export const suits = (node: Node, { kind, demand }: Pick<TaskSpec, 'kind' | 'demand'>): boolean =>
  kind.implementations.some(({ demand: own }) => node.suits(own ?? demand))
