import { hadNotBegun } from '../../core/events.ts'
import type { Outcome, RunEvent, TaskUsage } from '../../core/events.ts'
import { DeviceStatistics } from './device-statistics.ts'
import { NodeStatistics } from './node-statistics.ts'
import { StreamStatistics } from './stream-statistics.ts'
import { EarlyStarts } from './early-starts.ts'
import { IdTable } from './id-table.ts'
import { labelOf, withLabel } from '../label.ts'
import {
  addSteps,
  addUsage,
  countHeld,
  emptyKind,
  longestSince,
  type Attempt,
  type KindStatistics,
} from './statistics-kind.ts'
import { BusyIntervals } from './busy-intervals.ts'

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
  /** Running time times cpus. */
  cpuBusyMs = 0
  /** Running time of attempts that failed or were lost. */
  lostMs = 0
  /** Lane time idle while tasks waited for data that others were making. */
  starvedMs = 0

  /** Tasks that wait or are ready: twice their kind, plus 1 if ready, plus 1 because 0 means absent. */
  readonly #queued = new IdTable()
  readonly #attempts = new Map<number, Attempt>()
  readonly #names = new Map<number, string>()
  /** Of tasks that have one and have not ended. */
  readonly #labels = new Map<number, string>()
  #cpusRunning = 0
  #blame = 0
  /** Sum of `since` over what runs, so that running time up to now needs no loop. */
  #sinceSum = 0
  /** When any task ran. */
  readonly #ran = new BusyIntervals()

  get cpus(): number {
    return this.nodes.cpus
  }

  #waits: { task: number; reason: string } | null = null

  /** Tasks that will not change any more. */
  get ended(): number {
    const { done, failed, cancelled, ignored } = this.total
    return done + failed + cancelled + ignored
  }

  get parallelism(): number {
    const ran = this.total.busyMs + this.#underWay(this.elapsed)
    const anyRan = this.#ran.totalWith(longestSince(this.#attempts, this.elapsed), this.elapsed)
    return anyRan > 0 ? ran / anyRan : 0
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
    return this.#attempts.has(task) || this.#queued.get(task) === 0
      ? null
      : `${this.nameOf(task)} waits: ${reason}`
  }

  attemptOf(task: number): Attempt | undefined {
    return this.#attempts.get(task)
  }

  /** Name of the kind of a task that has not ended. */
  kindName(task: number): string {
    const attempt = this.#attempts.get(task)
    if (attempt) return attempt.kind.name
    const packed = this.#queued.get(task)
    return packed === 0 ? 'task' : this.#kind((packed - 1) >> 1).name
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
    const running = [...this.#attempts.values()].filter(attempt => !attempt.isBlocked)
    return running.sort((a, b) => a.startedAt - b.startedAt || a.task - b.task).slice(0, limit)
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
    const left = queued + Math.max(0, begun - this.#underWay(now))
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
        this.#enqueue(event.task, this.#kind(event.kind), false)
        this.#kind(event.kind).submitted++
        this.#kind(event.kind).priority = Math.max(this.#kind(event.kind).priority, event.priority)
        this.#label(event)
        this.total.submitted++
        break
      case 'ready':
        this.#advance(event.at)
        this.#becomeReady(event.task)
        break
      case 'started':
        this.#advance(event.at)
        this.begunAt ??= event.at
        this.#start(event)
        break
      case 'blocked':
        this.#advance(event.at)
        this.#block(event)
        break
      case 'resumed':
        this.#advance(event.at)
        this.#resume(event)
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

  /**
   * Starvation is shared among those that run, without a loop over them: `#blame` is the integral of idle
   * lanes per running task, and each attempt takes the part of it that falls into its time.
   */
  #advance(at: number): void {
    const passed = at - this.elapsed
    if (passed <= 0) return
    this.elapsed = at
    const { running, ready, waiting } = this.total
    if (running === 0) return
    const idle = this.nodes.cpus - this.#cpusRunning
    if (idle > 0 && ready === 0 && waiting > 0) {
      this.starvedMs += idle * passed
      this.#blame += (idle * passed) / running
    }
  }

  /** How long those that run now have run, all together. */
  #underWay(now: number): number {
    return Math.max(0, this.total.running * now - this.#sinceSum)
  }

  #kind(id: number): KindStatistics {
    let kind = this.kinds.get(id)
    if (kind === undefined) {
      kind = emptyKind(id, `kind ${id}`)
      this.kinds.set(id, kind)
    }
    return kind
  }

  #label(event: Of<'submitted'>): void {
    const label = labelOf(event)
    if (label !== '') this.#labels.set(event.task, label)
  }

  #enqueue(task: number, kind: KindStatistics, isReady: boolean): void {
    this.#queued.set(task, kind.kind * 2 + (isReady ? 2 : 1))
    if (isReady) countHeld(kind, this.elapsed)
    if (isReady) {
      kind.ready++
      this.total.ready++
    } else {
      kind.waiting++
      this.total.waiting++
    }
  }

  #dequeue(task: number): KindStatistics | null {
    const packed = this.#queued.get(task)
    if (packed === 0) return null
    this.#queued.delete(task)
    const kind = this.#kind((packed - 1) >> 1)
    if (packed % 2 === 0) {
      countHeld(kind, this.elapsed)
      kind.ready--
      this.total.ready--
    } else {
      kind.waiting--
      this.total.waiting--
    }
    return kind
  }

  #becomeReady(task: number): void {
    const packed = this.#queued.get(task)
    if (packed % 2 === 1) this.#enqueue(task, this.#dequeue(task)!, true)
  }

  #start(event: Of<'started'>): void {
    const kind = this.#dequeue(event.task)
    if (kind === null) return
    const { task, attempt, node, lane, cpus, at } = event
    const times = { startedAt: at, since: at, ranMs: 0, blameAt: this.#blame }
    this.#attempts.set(task, { task, kind, attempt, node, lane, cpus, isBlocked: false, ...times })
    this.#cpusRunning += cpus
    this.#sinceSum += at
    countHeld(kind, this.elapsed)
    kind.running++
    this.total.running++
  }

  #block({ task, at }: Of<'blocked'>): void {
    const attempt = this.#attempts.get(task)
    if (attempt === undefined || attempt.isBlocked) return
    this.#pause(attempt, at)
    attempt.isBlocked = true
    attempt.kind.blocked++
    this.total.blocked++
  }

  #resume({ task, at, node, lane }: Of<'resumed'>): void {
    const attempt = this.#attempts.get(task)
    if (attempt === undefined || !attempt.isBlocked) return
    attempt.isBlocked = false
    attempt.since = at
    attempt.blameAt = this.#blame
    attempt.node = node
    attempt.lane = lane
    this.#cpusRunning += attempt.cpus
    this.#sinceSum += at
    attempt.kind.blocked--
    this.total.blocked--
    countHeld(attempt.kind, this.elapsed)
    attempt.kind.running++
    this.total.running++
  }

  #pause(attempt: Attempt, at: number): void {
    const ran = Math.max(0, at - attempt.since)
    this.#ran.add(attempt.since, at)
    if (this.#ran.isFull) {
      this.#ran.add(longestSince(this.#attempts, this.elapsed), this.elapsed)
      this.#ran.close()
    }
    attempt.ranMs += ran
    attempt.kind.busyMs += ran
    attempt.kind.blameMs += this.#blame - attempt.blameAt
    this.total.busyMs += ran
    this.cpuBusyMs += ran * attempt.cpus
    this.nodes.ran(attempt.node, ran * attempt.cpus)
    this.#cpusRunning -= attempt.cpus
    this.#sinceSum -= attempt.since
    countHeld(attempt.kind, this.elapsed)
    attempt.kind.running--
    this.total.running--
  }

  #endAttempt(task: number, at: number): Attempt | null {
    const attempt = this.#attempts.get(task)
    if (attempt === undefined) return null
    this.#attempts.delete(task)
    const { kind } = attempt
    if (attempt.isBlocked) {
      kind.blocked--
      this.total.blocked--
    } else {
      this.#pause(attempt, at)
    }
    const { ranMs } = attempt
    if (ranMs > kind.longestMs) kind.longestMs = ranMs
    if (ranMs > this.total.longestMs) this.total.longestMs = ranMs
    return attempt
  }

  #end(task: number, at: number, state: 'done' | 'failed' | 'cancelled' | 'ignored'): Attempt | null {
    const attempt = this.#endAttempt(task, at)
    const kind = attempt?.kind ?? this.#dequeue(task)
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
    const kind = this.#dequeue(task)
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
    const attempt = this.#endAttempt(task, at)
    if (attempt === null) return
    this.#used(attempt, usage)
    if (!isUnbegun) {
      this.lostMs += attempt.ranMs
      attempt.kind.retried++
      this.total.retried++
    }
    this.#enqueue(task, attempt.kind, true)
  }

  #most(measure: (kind: KindStatistics) => number): KindStatistics | null {
    let best: KindStatistics | null = null
    for (const kind of this.kinds.values()) {
      if (measure(kind) > (best === null ? 0 : measure(best))) best = kind
    }
    return best
  }
}
