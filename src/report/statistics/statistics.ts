import { hadNotBegun } from '../../core/events.ts'
import type { Outcome, RunEvent, TaskUsage } from '../../core/events.ts'
import { DeviceStatistics } from './device-statistics.ts'
import { NodeStatistics } from './node-statistics.ts'
import { StreamStatistics } from './stream-statistics.ts'
import { EarlyStarts } from './early-starts.ts'
import { QueuedTasks } from './queued-tasks.ts'
import { RunningAttempts } from './running-attempts.ts'
import { labelOf, withLabel } from '../label.ts'
import { addSteps, addUsage, emptyKind, type Attempt, type KindStatistics } from './statistics-kind.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** Warnings whose text is kept for the summary. */
const KEPT_WARNINGS = 3

/** Failures kept in full. */
export const KEPT_FAILURES = 20

/**
 * The state of a run, kept event by event at constant cost: the one place where counts are made for the
 * terminal, the summary and `show`. Memory grows with the tasks that are alive and with kinds, never with
 * tasks that have ended.
 *
 * Parallelism achieved is the mean number of tasks running while any ran: running time of all attempts
 * divided by the time during which at least one ran.
 */
export class Statistics {
  readonly kinds = new Map<number, KindStatistics>()
  readonly total: KindStatistics = emptyKind(-1, 'all')
  readonly early = new EarlyStarts()
  readonly devices = new DeviceStatistics()
  readonly nodes = new NodeStatistics()
  readonly streams = new StreamStatistics()
  run: Of<'run-started'> | null = null
  /** Null until the run ended. */
  outcome: Outcome | null = null
  endMessage: string | null = null
  /** The first failures that were final, in full; `failureCount` has them all. */
  readonly failures: Of<'failed'>[] = []
  failureCount = 0
  warnings = 0
  /** The first of them, each once. */
  readonly warningTexts = new Set<string>()
  bytesCommitted = 0
  /** Latest time seen. Events step back by up to a batch, and then count as of this time where order matters. */
  elapsed = 0
  /** When the first task began; null before. */
  begunAt: number | null = null
  /** Running time of attempts that failed or were lost. */
  lostMs = 0

  readonly #queued = new QueuedTasks(this.total, id => this.#kind(id))
  readonly #attempts = new RunningAttempts(this.total, this.nodes)
  readonly #names = new Map<number, string>()
  /** Of tasks that have one and have not ended. */
  readonly #labels = new Map<number, string>()
  #waits: { task: number; reason: string } | null = null

  get cpus(): number {
    return this.nodes.cpus
  }

  /** Running time times CPUs. */
  get cpuBusyMs(): number {
    return this.#attempts.cpuBusyMs
  }

  /** Lane time idle while tasks waited for data that others were making. */
  get starvedMs(): number {
    return this.#attempts.starvedMs
  }

  /** Tasks that will not change any more. */
  get ended(): number {
    const { done, failed, cancelled, ignored } = this.total
    return done + failed + cancelled + ignored
  }

  get parallelism(): number {
    return this.#attempts.parallelism(this.elapsed)
  }

  /** Share of the cpus' time in which no task held them, or null when no task holds cpus. */
  get idleShare(): number | null {
    const offered = this.nodes.offered(this.elapsed)
    return offered > 0 && this.cpuBusyMs > 0 ? Math.max(0, 1 - this.cpuBusyMs / offered) : null
  }

  /** The kind with most running time. */
  get longestKind(): KindStatistics | null {
    return this.#most(kind => kind.busyMs)
  }

  /** The kind that others waited for most, while lanes were idle. */
  get blamedKind(): KindStatistics | null {
    return this.#most(kind => kind.blameMs)
  }

  /** Where nothing runs: what a ready task waits for, as far as that was said. */
  get standstill(): string | null {
    if (this.total.running > 0 || this.total.ready === 0 || !this.#waits) return null
    const { task, reason } = this.#waits
    return this.#attempts.of(task) || !this.#queued.has(task) ? null : `${this.nameOf(task)} waits: ${reason}`
  }

  attemptOf(task: number): Attempt | undefined {
    return this.#attempts.of(task)
  }

  /** Name of the kind of a task that has not ended. */
  kindName(task: number): string {
    return (this.#attempts.of(task)?.kind ?? this.#queued.kindOf(task))?.name ?? 'task'
  }

  /** What tells a task that has not ended from others of its kind; it may be nothing. */
  labelOf(task: number): string {
    return this.#labels.get(task) ?? ''
  }

  /** `name#id`, and the label, of a task that has not ended. */
  nameOf(task: number): string {
    return withLabel(`${this.kindName(task)}#${task}`, this.labelOf(task))
  }

  /** The same of a failure that is kept, whose task is no longer known. */
  failedName(task: number): string {
    return this.#names.get(task) ?? `task#${task}`
  }

  /** Attempts that have run longest. Looks at all that run: for a painter, not for each event. */
  slowest(limit: number): Attempt[] {
    return this.#attempts.slowest(limit)
  }

  /**
   * Milliseconds until all tasks known now will have ended, or null while there is no basis. The rest of
   * each kind takes its own mean time (the overall mean if none has ended), at the parallelism so far.
   */
  eta(now = this.elapsed): number | null {
    const { total, parallelism } = this
    if (total.done === total.kept || parallelism === 0 || this.standstill !== null) return null
    let queued = 0
    let begun = 0
    for (const kind of this.kinds.values()) {
      const basis = kind.done > kind.kept ? kind : total
      const mean = basis.busyMs / (basis.done - basis.kept)
      queued += (kind.waiting + kind.ready + kind.blocked) * mean
      begun += kind.running * mean
    }
    // A task that takes longer than others of its kind says nothing about those that have not begun.
    const left = queued + Math.max(0, begun - this.#attempts.underWay(now))
    return left > 0 ? left / parallelism : null
  }

  observe(event: RunEvent): void {
    this.early.observe(event)
    switch (event.type) {
      case 'run-started':
        this.devices.observe(event)
        this.run = event
        this.nodes.observe(event)
        break
      case 'node-joined':
      case 'node-left':
        this.#advance(event.at)
        this.nodes.observe(event)
        break
      case 'kind-defined':
        this.devices.observe(event)
        this.#kind(event.kind).name = event.name
        break
      case 'submitted':
        this.#advance(event.at)
        this.#submit(event)
        break
      case 'ready':
        this.#advance(event.at)
        this.#queued.becomeReady(event.task, this.elapsed)
        break
      case 'started':
        this.#advance(event.at)
        this.begunAt ??= event.at
        this.#start(event)
        break
      case 'blocked':
        this.#advance(event.at)
        this.#attempts.block(event, this.elapsed)
        break
      case 'resumed':
        this.#advance(event.at)
        this.#attempts.resume(event, this.elapsed)
        break
      case 'finished':
        this.#advance(event.at)
        this.#finish(event)
        break
      case 'kept':
        this.#advance(event.at)
        this.#keep(event)
        break
      case 'failed':
        this.#advance(event.at)
        this.#fail(event)
        break
      case 'cancelled':
        this.#advance(event.at)
        this.#end(event.task, event.at, 'cancelled')
        break
      case 'returned':
        this.#advance(event.at)
        this.#again(event.task, event.at, undefined, hadNotBegun(event))
        break
      case 'committed':
        this.bytesCommitted += event.bytes
        break
      case 'note':
        if (event.level === 'warning') {
          this.warnings++
          if (this.warningTexts.size < KEPT_WARNINGS) this.warningTexts.add(event.text)
        }
        break
      case 'waits':
        this.#waits = { task: event.task, reason: event.reason }
        this.devices.observe(event)
        break
      case 'device':
      case 'device-failed':
      case 'trial':
      case 'verdict':
      case 'move':
        this.devices.observe(event)
        this.#advance(event.at)
        break
      case 'stream':
        this.streams.observe(event)
        this.#advance(event.at)
        break
      case 'control':
      case 'thread-died':
      case 'interrupted':
        this.#advance(event.at)
        break
      case 'run-ended':
        this.#advance(event.at)
        this.outcome = event.outcome
        this.endMessage = event.message ?? null
        break
      default:
        break
    }
  }

  #advance(at: number): void {
    const passed = at - this.elapsed
    if (passed <= 0) return
    this.elapsed = at
    this.#attempts.passed(passed)
  }

  #kind(id: number): KindStatistics {
    let kind = this.kinds.get(id)
    if (kind === undefined) {
      kind = emptyKind(id, `kind ${id}`)
      this.kinds.set(id, kind)
    }
    return kind
  }

  #submit(event: Of<'submitted'>): void {
    const kind = this.#kind(event.kind)
    this.#queued.add(event.task, kind, false, this.elapsed)
    kind.submitted++
    kind.priority = Math.max(kind.priority, event.priority)
    this.total.submitted++
    const label = labelOf(event)
    if (label !== '') this.#labels.set(event.task, label)
  }

  #start(event: Of<'started'>): void {
    const kind = this.#queued.remove(event.task, this.elapsed)
    if (kind !== null) this.#attempts.start(event, kind, this.elapsed)
  }

  #end(task: number, at: number, state: 'done' | 'failed' | 'cancelled' | 'ignored'): Attempt | null {
    const attempt = this.#attempts.end(task, at, this.elapsed)
    const kind = attempt?.kind ?? this.#queued.remove(task, this.elapsed)
    this.#labels.delete(task)
    if (kind) {
      kind[state]++
      this.total[state]++
    }
    if (attempt && state !== 'done') this.lostMs += attempt.ranMs
    return attempt
  }

  #finish({ task, at, usage, steps, kept }: Of<'finished'>): void {
    const attempt = this.#end(task, at, 'done')
    this.#used(attempt, usage)
    if (!attempt) return
    if (kept) {
      for (const counts of [attempt.kind, this.total]) {
        counts.kept++
        counts.upToDate++
      }
    }
    this.nodes.done(attempt.node)
    if (!steps) return
    addSteps(attempt.kind, steps)
    addSteps(this.total, steps)
  }

  /** It did not run. */
  #keep({ task }: Of<'kept'>): void {
    const kind = this.#queued.remove(task, this.elapsed)
    if (!kind) return
    for (const counts of [kind, this.total]) {
      counts.done++
      counts.kept++
    }
  }

  #used(attempt: Attempt | null, usage: TaskUsage | undefined): void {
    if (!attempt || !usage) return
    addUsage(attempt.kind, usage, attempt.ranMs)
    addUsage(this.total, usage, attempt.ranMs)
  }

  #fail(event: Of<'failed'>): void {
    const { task, at } = event
    if (event.next === 'retry') return this.#again(task, at, event.usage)
    const name = this.nameOf(task)
    const attempt = this.#end(task, at, event.next === 'ignore' ? 'ignored' : 'failed')
    this.#used(attempt, event.usage)
    if (event.next === 'ignore') return
    this.failureCount++
    if (this.failures.length === KEPT_FAILURES) return
    this.failures.push(event)
    if (attempt) this.#names.set(task, name)
  }

  /** `isUnbegun`: it was called back from its lane, so nothing has failed. */
  #again(task: number, at: number, usage?: TaskUsage, isUnbegun = false): void {
    const attempt = this.#attempts.end(task, at, this.elapsed)
    if (attempt === null) return
    this.#used(attempt, usage)
    if (!isUnbegun) {
      this.lostMs += attempt.ranMs
      attempt.kind.retried++
      this.total.retried++
    }
    this.#queued.add(task, attempt.kind, true, this.elapsed)
  }

  #most(measure: (kind: KindStatistics) => number): KindStatistics | null {
    let best: KindStatistics | null = null
    for (const kind of this.kinds.values()) {
      if (measure(kind) > (best === null ? 0 : measure(best))) best = kind
    }
    return best
  }
}
