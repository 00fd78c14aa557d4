import { Engine } from '../core/engine.ts'
import type { AccessRequest, Instruction } from '../core/engine.ts'
import type { Version } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import type { Observer } from '../core/events.ts'
import { lost } from '../core/why.ts'
import type { ReturnWhy } from '../core/why.ts'
import type { IoOptions } from '../core/io/io-core.ts'
import type { Lane, Node } from '../core/schedule/machine.ts'
import { LOOK_AT_LANES } from '../core/schedule/recalls.ts'
import type { Policy } from '../core/schedule/policy.ts'
import { demandOf } from '../core/tasks/demand.ts'
import { Implementation } from '../core/tasks/task.ts'
import type { Group } from '../core/tasks/group.ts'
import type { Demand } from '../core/tasks/demand.ts'
import type { Kind, Task, TaskSpec } from '../core/tasks/task.ts'
import { Clock } from './clock.ts'
import type { Alarm } from './clock.ts'
import { Execution, computeOf } from './execution.ts'
import type { Surroundings, Work } from './execution.ts'
import { coreNode } from './machine/platform.ts'
import type { Platform } from './machine/platform.ts'
import { randomFrom } from './machine/random.ts'
import { Movers } from './machine/movers.ts'
import { Stores } from './machine/stores.ts'
import { Failures } from './failures.ts'
import type { FailureOptions } from './failures.ts'
import { Lineage } from './lineage.ts'
import { Looking } from './looking.ts'
import { membersOf } from './members.ts'
import { Partitioning } from './partition.ts'
import type { PartitionWay } from '../node/processes/gpmetis.ts'

export interface SimulationOptions extends IoOptions {
  platform: Platform
  policy?: Policy
  observer?: Observer | null
  jitter?: number
  seed?: number
  /** Bytes per second that each I/O task asks for, instead of what it says itself. */
  bandwidth?: number
  /** The graph is divided among the nodes before it runs. */
  partition?: PartitionWay
  /** Nodes that are lost, end and join. */
  failures?: FailureOptions
}

export type SimulatedSpec = Omit<TaskSpec, 'group' | 'payload'> & { group?: Group }

/** Callbacks for things that happen in the engine. */
export interface Watcher {
  settled(version: Version): void
  idle(group: Group): void
  unread(version: Version): void
}

/** The real scheduler on a virtual clock: what it starts takes the time that the models say. */
export class Simulation implements Surroundings {
  readonly clock = new Clock()
  readonly engine: Engine
  readonly stores: Stores
  watcher: Watcher | null = null
  /** Tasks that ended, when the last did, the time for which they held CPUs, and what they computed: milliseconds times CPUs. */
  ended = 0
  lastEnd = 0
  cpuTime = 0
  computeTime = 0
  readonly #kinds = new Map<string, Kind>()
  readonly #afterEnds = new Map<Task, (() => void)[]>()
  /** Tasks that wait for a value, since when, and what goes on then. */
  readonly #takers = new Map<Version, Task>()
  readonly #waiting = new Map<Task, { since: number; alarm: Alarm }>()
  readonly #movers: Movers
  readonly #looking: Looking
  /** Lanes are looked at soon. */
  #looks = false
  readonly #jitter: number
  readonly #bandwidth: number | null
  readonly #random: () => number
  readonly #partitioning: Partitioning | null
  /** Where nodes are lost: who made what lies on them, and what runs. */
  readonly lineage: Lineage | null
  readonly #running: Map<Task, Execution> | null
  /** CPU time of attempts that came to nothing; milliseconds times CPUs. */
  lostTime = 0

  constructor(options: SimulationOptions) {
    const { platform, policy, observer, jitter, seed, bandwidth, partition, failures, ...io } = options
    this.stores = new Stores(this.clock, platform)
    this.#jitter = jitter ?? 0
    this.#bandwidth = bandwidth ?? null
    this.#random = randomFrom(seed ?? 1)
    this.engine = new Engine({
      nodes: platform.nodes.map(coreNode),
      ...(policy ? { policy } : {}),
      ...io,
      observer: observer ?? null,
      mayGrow: failures?.replaceAfter !== undefined,
      sizeOf: ({ value }) => (typeof value === 'number' ? value : 0),
    })
    this.#looking = new Looking(this.clock, this.engine.io.limits.looks, this.stores)
    const homeOf = ({ id }: Version): number | null => this.stores.placeOf(id)?.node ?? null
    this.#partitioning = partition ? new Partitioning(this.engine, partition, homeOf) : null
    this.lineage = failures ? new Lineage(this.engine, this.stores) : null
    this.#running = failures ? new Map() : null
    if (failures) {
      const plan = new Failures(failures, platform, membersOf(this), this.#random)
      this.clock.waitsAside = () => plan.expectsNodes && this.engine.root.live > 0
    }
    this.#movers = new Movers(this.clock, this.stores, move => this.engine.io.moved(move, this.clock.now))
  }

  kind(name: string, form: Kind['form'] = 'command', module = ''): Kind {
    let kind = this.#kinds.get(name)
    if (!kind) {
      kind = { id: this.#kinds.size + 1, name, form, module, implementations: [new Implementation(name)] }
      this.define(kind)
      this.#kinds.set(name, kind)
    }
    return kind
  }

  define({ id, name, form, module }: Kind): void {
    this.engine.observer?.({ type: 'kind-defined', at: this.clock.now, kind: id, name, form, module })
  }

  submit(spec: SimulatedSpec, accesses: readonly AccessRequest[], work: Work): Task {
    const {
      kind,
      demand,
      priority,
      parent,
      onFailure,
      retries,
      timed,
      label,
      group = this.engine.root,
    } = spec
    const full: TaskSpec = {
      kind,
      group,
      demand: this.#demand(demand),
      payload: this.#jitter > 0 ? this.#vary(work) : work,
    }
    if (priority !== undefined) full.priority = priority
    if (parent !== undefined) full.parent = parent
    if (onFailure !== undefined) full.onFailure = onFailure
    if (retries !== undefined) full.retries = retries
    if (timed !== undefined) full.timed = timed
    if (label) full.label = label
    const task = this.engine.submit(full, accesses, this.clock.now)
    this.#partitioning?.submitted(task)
    return task
  }

  #demand(demand: Demand): Demand {
    if (!demand.io || !demand.storage || this.#bandwidth === null) return demand
    const { memory, tags, storage } = demand
    return demandOf(0, memory, tags, true, { ...storage, bandwidth: this.#bandwidth })
  }

  #vary(work: Work): Work {
    return { ...work, compute: work.compute * (1 + this.#jitter * (2 * this.#random() - 1)) }
  }

  /** Runs until nothing is left to do. */
  run(): void {
    do this.decide()
    while (this.clock.step() || this.letOneGo())
    this.expectEnd()
  }

  /** Carries out what the core decides until there is nothing more to do at once. */
  decide(): void {
    for (;;) {
      const instructions = this.engine.decide(this.clock.now)
      if (instructions.length === 0) break
      for (const instruction of instructions) this.#carryOut(instruction)
    }
    this.#looking.arm()
    if (!this.#looks && this.engine.crowdedNodes().size > 0) {
      this.#looks = true
      this.clock.after(LOOK_AT_LANES, this.#lookAtLanes)
    }
  }

  /** As the runtime does, all the time while tasks wait on lanes. */
  readonly #lookAtLanes = (now: number): void => {
    this.#looks = false
    for (const node of this.engine.crowdedNodes()) {
      for (const lane of node.lanes) this.engine.laneSilent(node.index, lane.index, now)
    }
  }

  /** What has not begun goes back to be placed anew. */
  #recall(tasks: readonly Task[], why: ReturnWhy): void {
    for (const task of tasks) {
      if (task.state === 'running' && task.startedAt < 0) this.engine.returned(task, why, this.clock.now)
    }
  }

  /** Nothing is under way: a task that waits for room, which only the program could free, starts without it. */
  letOneGo(): boolean {
    const { standstill } = this.engine.io
    return standstill.isThere && standstill.letOneGo(this.clock.now)
  }

  expectEnd(): void {
    const { live } = this.engine.root
    if (live === 0) return this.#expectNodes()
    throw new MillraceError(
      'MR_SIMULATION',
      `${live} tasks can never start: nothing runs that could release what they wait for`,
      { hint: 'Look at what they ask for: no node of this platform has room for it.' },
    )
  }

  /** What was cancelled because no node was left is no result. */
  #expectNodes(): void {
    if (!this.engine.isClosed || this.ended >= this.engine.taskCount) return
    const left = this.engine.taskCount - this.ended
    throw new MillraceError('MR_SIMULATION', `no node is left, and ${left} tasks have not ended`, {
      hint: 'Lose nodes less often than tasks end, or let others take their place: --replace-after 1min.',
    })
  }

  #carryOut(instruction: Instruction): void {
    switch (instruction.type) {
      case 'look':
        this.#partitioning?.assign()
        return this.engine.unanswered(instruction.task, this.clock.now)
      case 'start':
        return this.#begin(instruction.task)
      case 'stop':
        return this.engine.stopped(instruction.task, this.clock.now)
      case 'recall':
        return this.#recall(instruction.tasks, instruction.why)
      case 'discard':
        return this.#discard(instruction.version)
      case 'move':
        return this.#movers.begin(instruction.move)
      case 'pace':
        return this.#movers.pace(instruction.move)
      case 'settled':
        return this.#settled(instruction.version)
      case 'idle':
        return this.watcher?.idle(instruction.group)
      case 'unread':
        return this.watcher?.unread(instruction.version)
      case 'resume':
        return this.#resume(instruction.task)
    }
  }

  #discard(version: Version): void {
    this.lineage?.discarded(version)
    version.value = undefined
    this.stores.forget(version.id)
    this.engine.io.gone(version)
  }

  /** Short tasks may be behind another one on their lane: they begin when it has ended. */
  #begin(task: Task): void {
    const lane = this.engine.nodes[task.node]?.lanes[task.lane]
    if (lane && lane.queue.peek() !== task) return
    this.engine.started(task, this.clock.now)
    const node = this.stores.nodes[task.node]
    if (!node) throw new MillraceError('MR_INTERNAL', `${task.name} was started on no node`)
    const device = task.io?.device
    const to = device ? (this.stores.devices[device.index] ?? null) : null
    const execution = new Execution(task, node, this, to)
    this.#running?.set(task, execution)
    execution.ring(this.clock.now)
  }

  /** Called when a task has made something before its end. */
  release(task: Task, version: Version): void {
    if (task.state !== 'running') return
    version.value ??= true
    this.engine.release(task, version, this.clock.now, this.clock.now)
  }

  /** Called before a task reads something: with a node it may be gone since the task was ready. */
  isGone(task: Task, version: Version): boolean {
    if (!this.lineage || version.state !== 'pending') return false
    const lane = this.engine.nodes[task.node]?.lanes[task.lane]
    this.#giveBack(task, lost('what it reads was lost with a node, and is made again'))
    this.#beginNext(lane)
    return true
  }

  /** Nothing that ran, or waited, on the node counts any more. A task that several nodes were lost under fails. */
  cutOff(node: Node, reason: string): void {
    const why = lost(`node ${node.name}: ${reason}`)
    const lentTo = new Set(node.lanes.map(lane => lane.lentTo))
    const begun: Task[] = []
    for (const task of this.#running?.keys() ?? []) {
      if (task.node === node.index || lentTo.has(task)) begun.push(task)
    }
    const behind = node.lanes.flatMap(lane => [...lane.queue].filter(task => task.startedAt < 0))
    for (const task of begun) {
      this.lostTime += (this.clock.now - task.startedAt) * task.attemptDemand.cpus
      if (this.engine.afterLoss(task, 'node') !== 'repeatedly') continue
      throw new MillraceError(
        'MR_SIMULATION',
        `${task.title} was running on three nodes that were lost in turn`,
        {
          hint: 'Lose nodes less often, or let tasks take less time.',
        },
      )
    }
    for (const task of [...begun, ...behind]) this.#giveBack(task, why)
  }

  #giveBack(task: Task, why: ReturnWhy): void {
    this.#running?.get(task)?.cut()
    this.#running?.delete(task)
    if (this.#waiting.delete(task)) {
      for (const [version, taker] of this.#takers) if (taker === task) this.#takers.delete(version)
    }
    if (task.state === 'running' || task.state === 'blocked' || task.state === 'stopping') {
      this.engine.returned(task, why, this.clock.now)
    }
  }

  /** Called when a task has done all that it does. */
  end(task: Task, now: number): void {
    if (task.state !== 'running') return
    this.ended++
    this.lastEnd = now
    const { cpus } = task.attemptDemand
    this.cpuTime += (now - task.startedAt) * cpus
    this.computeTime += computeOf(task) * cpus
    this.#store(task)
    this.#running?.delete(task)
    this.lineage?.made(task)
    const lane = this.engine.nodes[task.node]?.lanes[task.lane]
    this.engine.finished(task, now)
    if (this.#afterEnds.size > 0) {
      for (const then of this.#afterEnds.get(task) ?? []) then()
      this.#afterEnds.delete(task)
    }
    this.#beginNext(lane)
  }

  /** Called when a task has to wait for a value of a stream. */
  wait(task: Task, version: Version, then: Alarm): void {
    const lane = this.engine.nodes[task.node]?.lanes[task.lane]
    this.#waiting.set(task, { since: this.clock.now, alarm: then })
    this.#takers.set(version, task)
    this.engine.blocked(task, 'for values', this.clock.now)
    this.engine.watch(version)
    this.#beginNext(lane)
  }

  #settled(version: Version): void {
    const taker = this.#takers.get(version)
    this.#takers.delete(version)
    if (taker) this.engine.unblocked(taker)
    this.watcher?.settled(version)
  }

  #resume(task: Task): void {
    const waited = this.#waiting.get(task)
    if (!waited) return
    this.#waiting.delete(task)
    const { cpus } = task.attemptDemand
    this.cpuTime -= (this.clock.now - waited.since) * cpus
    waited.alarm.ring(this.clock.now)
  }

  #beginNext(lane: Lane | undefined): void {
    const behind = lane?.queue.peek()
    if (behind && behind.startedAt < 0) this.#begin(behind)
  }

  /** Tells when a task has ended. */
  afterEnd(task: Task, then: () => void): void {
    const waiting = this.#afterEnds.get(task)
    if (waiting) waiting.push(then)
    else this.#afterEnds.set(task, [then])
  }

  /** What it wrote is there now, and has a size. */
  #store(task: Task): void {
    const { bytes } = task.payload as Work
    const { accesses } = task
    for (let i = 0; i < accesses.length; i++) {
      const write = accesses[i]?.write
      if (!write) continue
      // What stands for the value of a file is its size.
      if (write.value === undefined) write.value = bytes?.[i] ?? true
      if (bytes && (write.place || write.datum.temporary)) this.engine.io.stored(write, bytes[i] ?? 0)
    }
  }
}
