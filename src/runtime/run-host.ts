import type { Datum, Version } from '../core/data/datum.ts'
import type { AfterFailure } from '../core/events.ts'
import type { AfterLoss, LostWith } from '../core/tasks/losses.ts'
import type { Task } from '../core/tasks/task.ts'
import type { NodeHost } from '../node/node.ts'
import type { EarlyStart } from '../node/threads/early-wire.ts'
import type { Runtime } from './runtime.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  'engine' | 'keeper' | 'now' | 'paths' | 'releases' | 'settled' | 'timeOf' | 'unread'
>

/** What nodes ask of the run. */
export class RunHost implements NodeHost {
  readonly #runtime: Uses

  constructor(runtime: Uses) {
    this.#runtime = runtime
  }

  get taskCount(): number {
    return this.#runtime.engine.taskCount
  }

  now(): number {
    return this.#runtime.now()
  }

  timeOf(moment: number): number {
    return this.#runtime.timeOf(moment)
  }

  afterFailure(task: Task): AfterFailure {
    return this.#runtime.engine.afterFailure(task)
  }

  afterLoss(task: Task, lostWith: LostWith, culprit: Task | null): AfterLoss {
    return this.#runtime.engine.afterLoss(task, lostWith, culprit)
  }

  filesMade(task: Task): Promise<void> | null {
    return this.#runtime.keeper?.filesMade(task) ?? null
  }

  lastAttempt(task: Task): void {
    this.#runtime.engine.lastAttempt(task)
  }

  earlyStart(task: Task): EarlyStart | null {
    return this.#runtime.releases.startOf(task)
  }

  dataInside(folder: string): readonly Datum[] {
    return this.#runtime.paths.inside(folder)
  }

  remove(datum: Datum): void {
    this.#runtime.engine.remove(datum, this.#runtime.now())
  }

  settled(version: Version): Promise<void> {
    return this.#runtime.settled(version)
  }

  unread(version: Version): Promise<void> {
    return this.#runtime.unread(version)
  }
}
