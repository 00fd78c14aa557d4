import { Engine } from '../core/engine.ts'
import type { AccessRequest, Instruction } from '../core/engine.ts'
import type { Version } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import type { Observer } from '../core/events.ts'
import type { Policy } from '../core/policy.ts'
import { Implementation } from '../core/task.ts'
import type { Group, Kind, Task, TaskSpec } from '../core/task.ts'
import { Clock } from './clock.ts'
import { Execution } from './execution.ts'
import type { Surroundings, Work } from './execution.ts'
import type { Platform } from './platform.ts'
import { Stores } from './stores.ts'

export interface SimulationOptions {
  platform: Platform
  policy?: Policy
  observer?: Observer | null
}

export type SimulatedSpec = Omit<TaskSpec, 'group' | 'payload'> & { group?: Group }

/** Whoever wants to know when something in the engine has come to pass. */
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
  /** Tasks that ended. */
  ended = 0
  readonly #kinds = new Map<string, Kind>()

  constructor({ platform, policy, observer }: SimulationOptions) {
    this.stores = new Stores(this.clock, platform)
    this.engine = new Engine({
      nodes: [...platform.nodes],
      ...(policy ? { policy } : {}),
      observer: observer ?? null,
    })
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
    const { kind, demand, priority, parent, onFailure, retries, timed, group = this.engine.root } = spec
    const full: TaskSpec = { kind, group, demand, payload: work }
    if (priority !== undefined) full.priority = priority
    if (parent !== undefined) full.parent = parent
    if (onFailure !== undefined) full.onFailure = onFailure
    if (retries !== undefined) full.retries = retries
    if (timed !== undefined) full.timed = timed
    return this.engine.submit(full, accesses, this.clock.now)
  }

  /** Runs until nothing is left to do. */
  run(): void {
    do this.decide()
    while (this.clock.step())
    this.expectEnd()
  }

  /** Carries out what the core decides until there is nothing more to do at once. */
  decide(): void {
    for (;;) {
      const instructions = this.engine.decide(this.clock.now)
      if (instructions.length === 0) return
      for (const instruction of instructions) this.#carryOut(instruction)
    }
  }

  expectEnd(): void {
    const { live } = this.engine.root
    if (live === 0) return
    throw new MillraceError(
      'MR_SIMULATION',
      `${live} tasks can never start: nothing runs that could release what they wait for`,
      { hint: 'Look at what they ask for: no node of this platform has room for it.' },
    )
  }

  #carryOut(instruction: Instruction): void {
    switch (instruction.type) {
      case 'start':
        return this.#begin(instruction.task)
      case 'stop':
        return this.engine.stopped(instruction.task, this.clock.now)
      case 'discard':
        instruction.version.value = undefined
        return
      case 'settled':
        return this.watcher?.settled(instruction.version)
      case 'idle':
        return this.watcher?.idle(instruction.group)
      case 'unread':
        return this.watcher?.unread(instruction.version)
      case 'resume':
        return
    }
  }

  /** Short tasks may be behind another one on their lane: they begin when it has ended. */
  #begin(task: Task): void {
    if (task.lane >= 0 && this.engine.nodes[task.node]?.lanes[task.lane]?.queue.peek() !== task) return
    this.engine.started(task, this.clock.now)
    const node = this.stores.nodes[task.node]
    if (!node) throw new MillraceError('MR_INTERNAL', `${task.name} was started on no node`)
    new Execution(task, node, this).ring(this.clock.now)
  }

  /** Called when a task has done all that it does. */
  end(task: Task, now: number): void {
    if (task.state !== 'running') return
    this.ended++
    for (const { write } of task.accesses) if (write && write.value === undefined) write.value = true
    const lane = task.lane >= 0 ? this.engine.nodes[task.node]?.lanes[task.lane] : undefined
    this.engine.finished(task, now)
    const behind = lane?.queue.peek()
    if (behind && behind.startedAt < 0) this.#begin(behind)
  }
}
