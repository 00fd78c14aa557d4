import type { RunEvent } from '../../core/events.ts'
import { BusyIntervals } from './busy-intervals.ts'
import type { NodeStatistics } from './node-statistics.ts'
import { countHeld, longestSince } from './statistics-kind.ts'
import type { Attempt, KindStatistics } from './statistics-kind.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/**
 * Attempts that run or are blocked, and how long they ran.
 *
 * Starvation is shared among those that run, without a loop over them: `#blame` is the integral of idle
 * lanes per running task, and each attempt takes the part of it that falls into its time.
 */
export class RunningAttempts {
  /** Running time times CPUs. */
  cpuBusyMs = 0
  /** Lane time idle while tasks waited for data that others were making. */
  starvedMs = 0
  readonly #total: KindStatistics
  readonly #nodes: NodeStatistics
  readonly #attempts = new Map<number, Attempt>()
  #cpus = 0
  #blame = 0
  /** Sum of `since` over what runs, so that running time up to now needs no loop. */
  #sinceSum = 0
  /** When any task ran. */
  readonly #ran = new BusyIntervals()

  constructor(total: KindStatistics, nodes: NodeStatistics) {
    this.#total = total
    this.#nodes = nodes
  }

  of(task: number): Attempt | undefined {
    return this.#attempts.get(task)
  }

  /** Those that have run longest. Looks at all that run: for a painter, not for each event. */
  slowest(limit: number): Attempt[] {
    const running = [...this.#attempts.values()].filter(attempt => !attempt.isBlocked)
    return running.sort((a, b) => a.startedAt - b.startedAt || a.task - b.task).slice(0, limit)
  }

  /** How long those that run now have run, all together. */
  underWay(now: number): number {
    return Math.max(0, this.#total.running * now - this.#sinceSum)
  }

  /** How many ran on average, while any did. */
  parallelism(now: number): number {
    const anyRan = this.#ran.totalWith(longestSince(this.#attempts, now), now)
    return anyRan > 0 ? (this.#total.busyMs + this.underWay(now)) / anyRan : 0
  }

  /** In this time nothing changed. */
  passed(milliseconds: number): void {
    const { running, ready, waiting } = this.#total
    if (running === 0) return
    const idle = this.#nodes.cpus - this.#cpus
    if (idle > 0 && ready === 0 && waiting > 0) {
      this.starvedMs += idle * milliseconds
      this.#blame += (idle * milliseconds) / running
    }
  }

  start(event: Of<'started'>, kind: KindStatistics, now: number): void {
    const { task, attempt, node, lane, cpus, at } = event
    const times = { startedAt: at, since: at, ranMs: 0, blameAt: this.#blame }
    this.#attempts.set(task, { task, kind, attempt, node, lane, cpus, isBlocked: false, ...times })
    this.#runs(at, cpus, kind, now)
  }

  block({ task, at }: Of<'blocked'>, now: number): void {
    const attempt = this.#attempts.get(task)
    if (attempt === undefined || attempt.isBlocked) return
    this.#pause(attempt, at, now)
    attempt.isBlocked = true
    attempt.kind.blocked++
    this.#total.blocked++
  }

  resume({ task, at, node, lane }: Of<'resumed'>, now: number): void {
    const attempt = this.#attempts.get(task)
    if (attempt === undefined || !attempt.isBlocked) return
    attempt.isBlocked = false
    attempt.since = at
    attempt.blameAt = this.#blame
    attempt.node = node
    attempt.lane = lane
    this.#unblock(attempt.kind)
    this.#runs(at, attempt.cpus, attempt.kind, now)
  }

  end(task: number, at: number, now: number): Attempt | null {
    const attempt = this.#attempts.get(task)
    if (attempt === undefined) return null
    this.#attempts.delete(task)
    const { kind } = attempt
    if (attempt.isBlocked) this.#unblock(kind)
    else this.#pause(attempt, at, now)
    const { ranMs } = attempt
    if (ranMs > kind.longestMs) kind.longestMs = ranMs
    if (ranMs > this.#total.longestMs) this.#total.longestMs = ranMs
    return attempt
  }

  #unblock(kind: KindStatistics): void {
    kind.blocked--
    this.#total.blocked--
  }

  #runs(since: number, cpus: number, kind: KindStatistics, now: number): void {
    this.#cpus += cpus
    this.#sinceSum += since
    countHeld(kind, now)
    kind.running++
    this.#total.running++
  }

  #pause(attempt: Attempt, at: number, now: number): void {
    const ran = Math.max(0, at - attempt.since)
    this.#ran.add(attempt.since, at)
    if (this.#ran.isFull) {
      this.#ran.add(longestSince(this.#attempts, now), now)
      this.#ran.close()
    }
    attempt.ranMs += ran
    attempt.kind.busyMs += ran
    attempt.kind.blameMs += this.#blame - attempt.blameAt
    this.#total.busyMs += ran
    this.cpuBusyMs += ran * attempt.cpus
    this.#nodes.ran(attempt.node, ran * attempt.cpus)
    this.#cpus -= attempt.cpus
    this.#sinceSum -= attempt.since
    countHeld(attempt.kind, now)
    attempt.kind.running--
    this.#total.running--
  }
}
