import type { Version } from '../core/data/datum.ts'
import type { Engine } from '../core/engine.ts'
import { assignParts } from '../core/schedule/assign.ts'
import { TaskGraph } from '../core/schedule/task-graph.ts'
import type { Task } from '../core/tasks/task.ts'
import { divide } from '../node/processes/gpmetis.ts'
import type { PartitionWay } from '../node/processes/gpmetis.ts'
import { workOf } from './execution.ts'

/**
 * Divides what was called together among the nodes, before any of it is queued: the core asks before it queues a task, as
 * it does for results that are kept.
 */
export class Partitioning {
  readonly #engine: Engine
  readonly #way: PartitionWay
  /** The node whose disk has it. */
  readonly #homeOf: (version: Version) => number | null
  #tasks: Task[] = []

  constructor(engine: Engine, way: PartitionWay, homeOf: (version: Version) => number | null) {
    this.#engine = engine
    this.#way = way
    this.#homeOf = homeOf
    engine.looks.wants = () => true
  }

  submitted(task: Task): void {
    this.#tasks.push(task)
  }

  /** Assigns what has come since the last time. Less than a task for each node goes where its inputs are. */
  assign(): void {
    const tasks = this.#tasks
    if (tasks.length === 0) return
    this.#tasks = []
    const nodes = this.#engine.nodes.filter(({ isLost, isPaused }) => !isLost && !isPaused)
    if (nodes.length < 2 || tasks.length < nodes.length) return
    const graph = new TaskGraph()
    for (const { demand, accesses, payload } of tasks) {
      const { bytes } = payload as { bytes?: readonly number[] | null }
      const reads = accesses.flatMap(({ read }, i) => (read ? [[read, bytes?.[i] ?? 0] as const] : []))
      graph.add(
        demand.cpus,
        reads,
        accesses.flatMap(({ write }) => write ?? []),
      )
    }
    const parts = divide(
      graph.graph(nodes.length),
      nodes.map(({ cpus }) => cpus),
      this.#way,
    )
    const receivers = nodes.map(({ index, cpus }) => ({ node: index, share: cpus }))
    const nodeOf = assignParts(receivers, this.#inputs(tasks, parts))
    for (const [i, task] of tasks.entries()) task.near = nodeOf[parts[i] as number] as number
  }

  *#inputs(tasks: readonly Task[], parts: Int32Array): Generator<[number, number, number]> {
    for (const [i, task] of tasks.entries()) {
      const { bytes } = workOf(task)
      for (const [at, { read }] of task.accesses.entries()) {
        const home = read ? this.#homeOf(read) : null
        if (home !== null) yield [parts[i] as number, home, bytes?.[at] ?? 0]
      }
    }
  }
}
