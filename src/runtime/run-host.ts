import type { Datum, Version } from '../core/data/datum.ts'
import { DIRECT } from '../cluster/transfer/outgoing.ts'
import type { AfterFailure } from '../core/events.ts'
import type { AfterLoss, LostWith } from '../core/tasks/losses.ts'
import type { Task } from '../core/tasks/task.ts'
import type { NodeHost } from '../node/node.ts'
import type { EarlyStart } from '../node/threads/early-wire.ts'
import { canRepeat, canRepeatFiles } from './lineage.ts'
import type { Runtime } from './runtime.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  | 'channels'
  | 'engine'
  | 'keeper'
  | 'lineage'
  | 'nested'
  | 'now'
  | 'paths'
  | 'releases'
  | 'settled'
  | 'timeOf'
  | 'unread'
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

  staysFrom(task: Task): number {
    const { keeper, channels } = this.#runtime
    // Values of a stream are taken once.
    const takes = channels.any && task.accesses.some(({ read }) => read && channels.of(read.datum))
    if (takes || !canRepeat(task)) return 0
    return keeper === null ? DIRECT : keeper.staysFrom(task, DIRECT)
  }

  filesStay(task: Task, bytes: number): boolean {
    const { engine, keeper, nested } = this.#runtime
    if (engine.io.bound || nested.isCaller(task) || !canRepeatFiles(task)) return false
    return keeper === null || keeper.leavesFiles(task, bytes)
  }

  here(version: Version): Promise<void> {
    return this.#runtime.lineage.here(version)
  }

  want(version: Version): void {
    this.#runtime.lineage.want(version)
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
