import type { Version } from '../core/data/datum.ts'
import type { Task } from '../core/tasks/task.ts'
import type { Alarm, Clock } from './clock.ts'
import type { ModelDevice } from './machine/device.ts'
import type { ModelNode } from './machine/model-node.ts'
import type { Stores } from './machine/stores.ts'

/** What a task does while it runs: it reads, computes and writes, in this order. */
export interface Work {
  /** Milliseconds, on CPUs of speed 1 that it has for itself. */
  readonly compute: number
  /** `compute` and the times of `releases` are those on one CPU; on more it is faster by their number. */
  readonly speedUp?: (cpus: number) => number
  /** Bytes of what it uses, in the order of its accesses; null when nothing of it takes time. */
  readonly bytes?: readonly number[] | null
  /** Its time was recorded whole: what it reads and writes is part of `compute`, and `bytes` are sizes only. */
  readonly isWhole?: boolean
  /** Bytes beside these, at the place where the task would write by itself. */
  readonly read?: number
  readonly write?: number
  /** What it makes is released one by one, evenly spread over its computing, instead of at its end. */
  readonly eager?: boolean
  /** What is released before its end, by its place among the accesses, with the milliseconds of computing before it. */
  readonly releases?: readonly { readonly access: number; readonly after: number }[]
  /** It takes values as they come: for each it computes a part of the whole, once the value is there. */
  readonly takes?: readonly { readonly version: Version; readonly share: number }[]
}

export const workOf = (task: Task): Work => task.payload as Work

/** CPUs that the task has, by the implementation that was chosen. */
const cpusOf = ({ attemptDemand }: Task): number => attemptDemand.cpus

/** Milliseconds that it computes on the CPUs that it has. */
export const computeOf = (task: Task): number => workOf(task).compute / speedOf(task)

const speedOf = (task: Task): number => workOf(task).speedUp?.(cpusOf(task)) ?? 1

/** What an execution needs around it. */
export interface Surroundings {
  readonly clock: Clock
  readonly stores: Stores
  /** The task has made this and goes on. */
  release(task: Task, version: Version): void
  /** The task waits for this and holds no CPU meanwhile; then `then` rings. */
  wait(task: Task, version: Version, then: Alarm): void
  /** Whether what was to be read is gone. If so the task has been given back, and begins again when it is there. */
  isGone(task: Task, version: Version): boolean
  /** The task has done all that it does. */
  end(task: Task, now: number): void
}

/** One task under way, step by step. There may be very many at once: it is its own alarm. */
export class Execution implements Alarm {
  readonly #task: Task
  readonly #node: ModelNode
  readonly #around: Surroundings
  readonly #to: ModelDevice | null
  /** Steps: what is read, one by one; reading aside; computing; what is written, one by one; writing aside. */
  #step = 0
  /** Values that it has taken, and milliseconds that it has computed. */
  #taken = 0
  #computed = 0
  #isOver = false

  constructor(task: Task, node: ModelNode, around: Surroundings, to: ModelDevice | null = null) {
    this.#task = task
    this.#node = node
    this.#around = around
    this.#to = to
  }

  /** Its node is lost, and the task may run elsewhere: nothing of this attempt counts any more. */
  cut(): void {
    this.#isOver = true
  }

  ring(now: number): void {
    const task = this.#task
    if (this.#isOver) return
    // It was stopped meanwhile: what is under way ends, and nothing follows.
    if (task.state !== 'running') return
    const { stores } = this.#around
    const { bytes, isWhole, read = 0, write = 0, eager, releases, takes } = workOf(task)
    const count = bytes && !isWhole ? task.accesses.length : 0
    for (;;) {
      const at = this.#step++
      if (at < count) {
        const version = task.accesses[at]?.read
        const size = bytes?.[at] ?? 0
        if (version && size > 0 && this.#around.isGone(task, version)) return
        if (version && size > 0) return stores.read(version.id, size, this.#node, this)
      } else if (at === count) {
        if (read > 0) return stores.read(null, read, this.#node, this)
      } else if (at === count + 1) {
        if (takes && this.#take(takes)) return
        if (takes) continue
        const compute = computeOf(task)
        if (eager) this.#releaseEvenly(compute)
        for (const { access, after } of releases ?? []) this.#releaseAfter(access, after / speedOf(task))
        // Also for no time at all: a task ends in a step of its own, after the code that started it.
        return this.#compute(compute)
      } else if (at < 2 * count + 2) {
        const version = task.accesses[at - count - 2]?.write
        const size = bytes?.[at - count - 2] ?? 0
        if (version && size > 0) return stores.write(version, size, this.#node, this.#to, this)
      } else if (at === 2 * count + 2) {
        if (write > 0) return stores.write(null, write, this.#node, this.#to, this)
      } else return this.#around.end(task, now)
    }
  }

  #compute(milliseconds: number): void {
    this.#node.compute(milliseconds, cpusOf(this.#task), this)
  }

  /** Computes for the next value, or waits for it; false when all have been taken. */
  #take(takes: NonNullable<Work['takes']>): boolean {
    const next = takes[this.#taken]
    if (!next) return false
    // The same step again.
    this.#step--
    if (!next.version.settled) {
      this.#around.wait(this.#task, next.version, this)
      return true
    }
    this.#taken++
    const { releases = [] } = workOf(this.#task)
    const [compute, speed] = [computeOf(this.#task), speedOf(this.#task)]
    const from = this.#computed
    const isLast = this.#taken === takes.length
    this.#computed = isLast ? compute : from + compute * next.share
    for (const { access, after } of releases) {
      const own = after / speed
      const isNow = own > from || (from === 0 && this.#taken === 1)
      if (isNow && own <= this.#computed) this.#releaseAfter(access, own - from)
    }
    this.#compute(this.#computed - from)
    return true
  }

  #releaseAfter(access: number, after: number): void {
    const version = this.#task.accesses[access]?.write
    if (!version) return
    const { clock } = this.#around
    clock.after(this.#node.alone(after), () => this.#release(version))
  }

  #releaseEvenly(compute: number): void {
    const task = this.#task
    const made = task.accesses.flatMap(({ write }) => write ?? [])
    const step = this.#node.alone(compute) / made.length
    const { clock } = this.#around
    made.forEach((version, i) => clock.after((i + 1) * step, () => this.#release(version)))
  }

  #release(version: Version): void {
    if (!this.#isOver) this.#around.release(this.#task, version)
  }
}
