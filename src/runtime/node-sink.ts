import type { Version } from '../core/data/datum.ts'
import type { Task } from '../core/tasks/task.ts'
import type { ReturnWhy } from '../core/why.ts'
import { keep } from '../node/files/outputs.ts'
import { jobOf } from '../node/job.ts'
import type { EarlyValue, Ending, Failure, NodeEvents, TaskMessage } from '../node/node.ts'
import type { Runtime } from './runtime.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  | 'channels'
  | 'engine'
  | 'keeper'
  | 'largeValues'
  | 'lineage'
  | 'modules'
  | 'nested'
  | 'now'
  | 'releases'
  | 'schedule'
>

/** Tells the core what happens to the files of a run. */
export class FileSink {
  readonly #runtime: Uses

  constructor(runtime: Uses) {
    this.#runtime = runtime
  }

  committed(task: Task, version: Version): void {
    const now = this.#runtime.now()
    this.#runtime.engine.release(task, version, now, now)
    this.#runtime.schedule()
  }

  flows(task: Task): void {
    const { engine } = this.#runtime
    for (const { write } of task.accesses) if (write?.growth) engine.grows(write, this.#runtime.now())
    this.#runtime.schedule()
  }

  note(level: 'info' | 'warning', text: string): void {
    this.#runtime.engine.observer?.({ type: 'note', at: this.#runtime.now(), level, text })
  }

  changed(): void {
    this.#runtime.schedule()
  }
}

/** Tells the core what happens on a node. */
export class NodeSink extends FileSink implements NodeEvents {
  readonly #runtime: Uses
  readonly #index: number

  constructor(runtime: Uses, index: number) {
    super(runtime)
    this.#runtime = runtime
    this.#index = index
  }

  began(task: Task, at: number): void {
    this.#runtime.engine.started(task, at)
  }

  released(task: Task, startedAt: number, value: EarlyValue): void {
    this.#runtime.keeper?.released(task, value)
    this.#runtime.releases.receive(task, startedAt, value)
  }

  finished(task: Task, ending: Ending, now: number): void {
    const { startedAt, took } = ending
    const runtime = this.#runtime
    if (jobOf(task).definition.returns > 0) runtime.releases.finishing(task)
    runtime.nested.ended(task)
    runtime.lineage.finished(task)
    runtime.keeper?.finished(task, took)
    const at = Math.max(task.startedAt, Math.min(startedAt + took, now))
    runtime.engine.finished(task, at, took, ending)
    if (task.state === 'done') runtime.largeValues.finished(task)
    runtime.lineage.overwritten(task)
    runtime.schedule()
  }

  failed(task: Task, { error, facts, log, usage }: Failure): void {
    const { engine, channels, nested, modules } = this.#runtime
    const { caller, definition } = jobOf(task)
    const next = engine.afterFailure(task)
    const isStopping = task.state === 'stopping'
    const channel = channels.madeBy(task)
    if (next === 'ignore' && channel) {
      const values = (definition.options.defaults?.returns as unknown[] | undefined) ?? []
      channel.goOnWith(values.map(value => keep(value, modules)))
    }
    nested.ended(task)
    // A stopped task is cancelled; its canceller knows.
    if (next === 'fail' && !isStopping) caller.unhandled.add(task)
    if (next !== 'retry' && !isStopping) channel?.fails()
    if (next === 'ignore' && !isStopping) this.#runtime.keeper?.finished(task, Infinity, true)
    engine.failed(task, facts, error, this.#runtime.now(), log, usage)
    this.#runtime.schedule()
  }

  returned(task: Task, why: ReturnWhy): void {
    this.#runtime.nested.ended(task)
    this.#runtime.engine.returned(task, why, this.#runtime.now())
    this.#runtime.schedule()
  }

  kept(tasks: readonly Task[]): void {
    this.#runtime.engine.kept(tasks)
  }

  stopped(task: Task): void {
    this.#runtime.nested.ended(task)
    this.#runtime.engine.stopped(task, this.#runtime.now())
    this.#runtime.schedule()
  }

  said(task: Task, message: TaskMessage, place: number): void {
    this.#runtime.nested.receive(message, task, place)
  }

  travels(task: Task): void {
    this.#runtime.engine.blocked(task, 'its files are brought from its node', this.#runtime.now())
    this.#runtime.schedule()
  }

  givenUp(task: Task): void {
    this.#runtime.nested.cancelCalled(task)
  }

  laneSilent(lane: number, now: number): boolean {
    return this.#runtime.engine.laneSilent(this.#index, lane, now)
  }

  died(lane: number, reason: string): void {
    const at = this.#runtime.now()
    this.#runtime.engine.observer?.({ type: 'thread-died', at, node: this.#index, lane, reason })
  }
}
