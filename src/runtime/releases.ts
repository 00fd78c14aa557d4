import type { Version } from '../core/data/datum.ts'
import type { Task } from '../core/tasks/task.ts'
import type { EarlyStart } from '../node/threads/early-wire.ts'
import type { Kept } from '../model/encoding/stored.ts'
import { jobOf } from '../node/job.ts'
import type { EarlyValue } from '../node/node.ts'
import type { Runtime } from './runtime.ts'
import type { Session } from './session.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  'channels' | 'copyOut' | 'engine' | 'largeValues' | 'now' | 'schedule' | 'whenSettled'
>

/** Takes in what running tasks release before they end. */
export class Releases {
  readonly #runtime: Uses
  /** Checksums of what tasks with `returns: n` have released, for attempts that come after. */
  readonly #checks = new WeakMap<Task, Map<number, number>>()

  /** Values that were linked to tasks which failed, with those. */
  readonly #lost = new WeakMap<Task, Map<Version, Task>>()

  constructor(runtime: Uses) {
    this.#runtime = runtime
  }

  /** What an attempt that starts now has to know; null for nearly all tasks. */
  startOf(task: Task): EarlyStart | null {
    const { definition } = jobOf(task)
    if (definition.stream) return this.#runtime.channels.madeBy(task)?.startOf() ?? null
    this.#lost.delete(task)
    const checks = definition.returns > 0 ? this.#checks.get(task) : undefined
    return checks ? { type: 'ready', checks } : null
  }

  /** A running task has released a value. */
  receive(task: Task, startedAt: number, { index, value, bytes, check, at }: EarlyValue): void {
    const now = this.#runtime.now()
    this.#runtime.engine.started(task, Math.min(startedAt, now))
    const channel = this.#runtime.channels.madeBy(task)
    if (channel) return channel.arrive(index, { kept: value, bytes, check, at })
    const version = this.#returned(task, index)
    if (!version || version.settled) return
    this.#remember(task, index, check)
    version.value = value
    this.#runtime.engine.release(task, version, Math.min(at, now), now)
    this.#runtime.largeValues.made(version)
    this.#runtime.schedule()
  }

  /** The value will be what a task makes that this one called. */
  link(task: Task, session: Session, index: number, id: number): void {
    const datum = session.data?.get(id)
    const channel = this.#runtime.channels.madeBy(task)
    const version = channel ? channel.expect(index, this.#runtime.now()) : this.#returned(task, index)
    if (!version || version.settled) return
    const { attempt } = task
    const source = datum && this.#runtime.engine.read(datum, this.#runtime.now())
    if (!source) {
      this.#runtime.engine.lose(version, task, this.#runtime.now())
      return
    }
    const come = (kept: Kept | undefined): void => {
      if (version.settled || (!channel && task.attempt !== attempt)) return
      const now = this.#runtime.now()
      if (kept === undefined && channel) this.#runtime.engine.lose(version, source.cause ?? task, now)
      else if (kept === undefined) this.#missing(task).set(version, source.cause ?? task)
      else {
        version.value = kept
        if (!channel) this.#remember(task, index, 0)
        this.#runtime.engine.release(task, version, now, now)
        this.#runtime.largeValues.made(version)
      }
      this.#runtime.schedule()
    }
    this.#runtime.whenSettled(source, () => {
      if (source.state === 'ready') {
        void Promise.resolve(this.#runtime.copyOut(source)).then(come, () => come(undefined))
      } else come(undefined)
    })
  }

  /** The task ends well. What it linked to failed tasks stays lost although this task succeeded. */
  finishing(task: Task): void {
    for (const [version, cause] of this.#lost.get(task) ?? []) {
      this.#runtime.engine.lose(version, cause, this.#runtime.now())
    }
  }

  #missing(task: Task): Map<Version, Task> {
    const known = this.#lost.get(task)
    if (known) return known
    const made = new Map<Version, Task>()
    this.#lost.set(task, made)
    return made
  }

  #returned(task: Task, index: number): Version | null {
    return task.accesses[jobOf(task).slots.length + index]?.write ?? null
  }

  #remember(task: Task, index: number, check: number): void {
    const checks = this.#checks.get(task)
    if (checks) checks.set(index, check)
    else this.#checks.set(task, new Map([[index, check]]))
  }
}
