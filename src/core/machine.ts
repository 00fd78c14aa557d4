import { Deque } from '../general/deque.ts'
import type { IoNodeDescription } from './io/io-node.ts'
import type { Demand } from './demand.ts'
import type { Kind, Task } from './task.ts'

type Form = Kind['form']

export interface NodeDescription extends IoNodeDescription {
  name: string
  cpus: number
  /** Bytes that tasks may claim by `memory`. */
  memory: number
  tags: readonly string[]
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
  /** Held by a task with several CPUs whose own lane is another one. */
  lentTo: Task | null = null
  /** Turned out to be long: while it runs here, nobody queues behind it. */
  long: Task | null = null
  /** Blocked tasks whose thread is behind this lane, and that could go on. */
  readonly resuming = new Deque<Task>()
  /** Tasks made ready by the task that ended here last, for policies that want them first. */
  released: Task[] = []

  constructor(index: number) {
    this.index = index
  }

  get idle(): boolean {
    return this.queue.size === 0 && this.lentTo === null
  }

  /** At work, so that what is of this form may queue behind what is there. */
  takes(form: Form): boolean {
    if (this.lentTo || this.queue.size === 0 || this.queue.size >= LANE_DEPTH) return false
    const head = this.queue.peek()
    return this.resuming.size === 0 && head !== this.long && head?.kind.form === form
  }

  /** Idle, and no blocked task has an older claim to it. */
  get free(): boolean {
    return this.idle && this.resuming.size === 0
  }
}

/**
 * How much short work a lane may hold, in milliseconds: enough to hide a round trip, too little to matter when
 * misjudged. What takes longer than `SHORT` is not counted as such. A program takes as long to start as many functions run.
 */
const LANE_LOAD = { function: 2, command: 32 }
const SHORT = { function: 0.5, command: 4 }
/**
 * Functions of up to this many milliseconds may wait behind others: their lane need not wait for us between the two, and
 * not wake us for each. Of these, a lane holds so many milliseconds while enough are left for all lanes to the end.
 */
const BRIEF = 10
const BRIEF_LOAD = 30
export const LANE_DEPTH = 1024
/** Functions that take no longer than it takes to start them on a thread, and how much of them a lane does before another helps. */
const TINY = 0.005
const HANDFUL = 0.5
/** So much expected work behind the task that runs is worth moving to another CPU; milliseconds. */
const WORTH_MOVING = 1

export class Node {
  readonly index: number
  readonly name: string
  readonly cpus: number
  readonly memory: number
  readonly tags: ReadonlySet<string>
  readonly lanes: Lane[]
  /** Wait on a lane, and are not to run any more unless they have begun. */
  recalled: Task[] = []
  freeMemory: number
  freeLanes: number
  /** Blocked tasks that could go on and wait for their lane. */
  claims = 0

  constructor(index: number, description: NodeDescription) {
    this.index = index
    this.name = description.name
    this.cpus = description.cpus
    this.memory = description.memory
    this.tags = new Set(description.tags)
    this.lanes = Array.from({ length: description.cpus }, (_, i) => new Lane(i))
    this.freeMemory = description.memory
    this.freeLanes = description.cpus
  }

  /** Could ever run it, were it idle. */
  suits({ cpus, memory, tags }: Demand): boolean {
    return cpus <= this.cpus && memory <= this.memory && tags.every(tag => this.tags.has(tag))
  }

  /** `freeLanes` also counts idle lanes that a blocked task waits for: those are not for new tasks. */
  fitsNow(demand: Demand): boolean {
    if (demand.cpus > this.freeLanes || demand.memory > this.freeMemory || !this.suits(demand)) return false
    if (this.claims === 0) return true
    const { lanes, memory } = this.#reserved()
    let free = -lanes
    for (const lane of this.lanes) if (lane.free) free++
    return demand.cpus <= free && demand.memory <= Math.max(0, this.freeMemory - memory)
  }

  /** What blocked tasks need beside their lane, which is idle: new tasks must not take it for ever. */
  #reserved(): { lanes: number; memory: number } {
    let lanes = 0
    let memory = 0
    for (const lane of this.lanes) {
      const task = lane.idle ? lane.resuming.peek() : undefined
      if (!task) continue
      const demand = task.implementation.demand ?? task.demand
      lanes += demand.cpus - 1
      memory += demand.memory
    }
    return { lanes, memory }
  }

  canResume(task: Task, demand: Demand): boolean {
    const lane = this.lanes[task.lane] as Lane
    return lane.idle && demand.cpus <= this.freeLanes && demand.memory <= this.freeMemory
  }

  /**
   * The least loaded lane on which a task of this form that takes so long may queue, or null. Only those of one form
   * queue together. `ready` tasks wait for a place. What comes after tasks of higher priority does not fill lanes, where these
   * would have to wait behind it.
   */
  shallowLane(form: Form, milliseconds: number, ready: number, isLower: boolean): Lane | null {
    const short = isShort(milliseconds, form)
    if (!short && (form === 'command' || milliseconds >= BRIEF)) return null
    let best: Lane | null = null
    const most = isLower ? 1 : Math.max(1, ready / (2 * this.cpus))
    const limit = isLower ? BRIEF : BRIEF_LOAD
    if (this.claims > 0 && this.#reserved().lanes > 0) return null
    for (const lane of this.lanes) {
      if (!lane.takes(form)) continue
      const isDeep = lane.queue.size <= most && lane.load < limit
      // Where those before it are not as short, what is short waits as they do: all wait behind it otherwise.
      const hasRoom =
        (isDeep && (!short || lane.load > SHORT[form] * lane.queue.size)) ||
        (short && lane.load < LANE_LOAD[form])
      if (hasRoom && (!best || lane.load < best.load)) best = lane
    }
    return best
  }

  /**
   * A lane that is at work on so little that to wake another one for a task this short would take longer than to wait. The
   * first of them, so that as few threads as can do it are kept busy with such tasks.
   */
  busyLane(form: Form, milliseconds: number): Lane | null {
    if (!isTiny(milliseconds) || this.claims > 0) return null
    return this.lanes.find(lane => lane.load < HANDFUL && lane.takes(form)) ?? null
  }

  /** Those that were sent to a lane and are not to run any more, unless they have begun. */
  takeRecalled(): Task[] {
    if (this.recalled.length === 0) return []
    const { recalled } = this
    this.recalled = []
    return recalled.filter(task => task.state === 'running' && this.lanes[task.lane]?.queue.peek() !== task)
  }

  /**
   * What waits on a lane though another one is idle, or though a blocked task waits for it: unless it has begun meanwhile, it
   * is better placed anew. Where a task with several CPUs is next, it has them sooner so. For each idle lane it is half of what
   * waits on another, of each the last first.
   */
  misplaced(): Task[] {
    if (this.freeLanes === 0 && this.claims === 0) return []
    const found: Task[] = []
    const full = this.lanes.filter(lane => waitingOn(lane) >= WORTH_MOVING)
    if (full.length > this.freeLanes) full.sort((a, b) => b.load - a.load)
    full.forEach((lane, rank) => {
      const behind = lane.queue.size - 1
      const isWanted = lane.resuming.size > 0
      const count = isWanted ? behind : rank < this.freeLanes ? Math.ceil(behind / 2) : 0
      for (const task of [...lane.queue].slice(1 + behind - count).reverse()) {
        if (task.state === 'running' && (isWanted || this.fitsNow(task.demand))) found.push(task)
      }
    })
    return found
  }

  occupy(task: Task, demand: Demand, prefer: Lane | null): Lane {
    const lane = prefer ?? (this.lanes.find(one => one.free) as Lane)
    lane.queue.push(task)
    lane.load += task.charge
    this.freeLanes--
    if (demand.cpus > 1) {
      // Lanes that a blocked task waits for come last.
      const others = this.lanes.filter(other => other.idle && other !== lane)
      others.sort((a, b) => Number(b.free) - Number(a.free))
      for (const other of others.slice(0, demand.cpus - 1)) other.lentTo = task
      this.freeLanes -= demand.cpus - 1
    }
    this.freeMemory -= demand.memory
    return lane
  }

  release(task: Task, demand: Demand): void {
    const lane = this.lanes[task.lane] as Lane
    if (lane.queue.peek() === task) lane.queue.shift()
    else if (lane.queue.peekLast() === task) lane.queue.pop()
    else lane.queue.remove(task)
    lane.load = lane.queue.size === 0 ? 0 : lane.load - task.charge
    if (lane.queue.size === 0) this.freeLanes++
    if (demand.cpus > 1) {
      for (const other of this.lanes) {
        if (other.lentTo !== task) continue
        other.lentTo = null
        this.freeLanes++
      }
    }
    this.freeMemory += demand.memory
  }
}

/** Milliseconds of functions that are expected behind the one that runs. */
function waitingOn({ queue, load }: Lane): number {
  const head = queue.size > 1 ? queue.peek() : undefined
  return head?.kind.form === 'function' ? load - head.charge : 0
}

export const isShort = (milliseconds: number, form: Form = 'function'): boolean => milliseconds < SHORT[form]

export const isTiny = (milliseconds: number): boolean => milliseconds < TINY

/** A lane is never charged less than this, so that the queue's depth stays bounded for empty tasks. */
export const chargeFor = (milliseconds: number): number => Math.max(milliseconds, 0.002)
