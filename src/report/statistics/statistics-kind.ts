import type { AttemptSteps, STEPS, TaskUsage } from '../../core/events.ts'

/** The tasks of one kind by state; each task is counted in exactly one of the states. */
export interface KindStatistics {
  readonly kind: number
  name: string
  submitted: number
  /** For inputs. */
  waiting: number
  /** For a lane or other resources. */
  ready: number
  running: number
  /** Gave its lane back to wait for tasks that it called. */
  blocked: number
  done: number
  failed: number
  cancelled: number
  /** Failed with `onFailure: 'ignore'`. */
  ignored: number
  /** Of those that are done: they made nothing, because their results or files were there from an earlier run. */
  kept: number
  /** Of those that are kept: their files were in place, and were right. */
  upToDate: number
  /** Attempts that were lost and made again: not a state, and a task can be counted often. */
  retried: number
  /** Running time of all attempts; time blocked is not in it. */
  busyMs: number
  longestMs: number
  /** What attempts used that ended well and whose use the system told; see `TaskUsage`. */
  measured: number
  measuredMs: number
  cpuMs: number
  /** The largest of them. */
  peakBytes: number
  askedBytes: number
  readBytes: number
  writtenBytes: number
  /** Attempts whose steps were measured, and what each step took, all together. */
  stepped: number
  readonly stepsMs: Record<(typeof STEPS)[number], number>
  /** Lane time that lay idle while tasks of this kind ran and others waited for data; see `RunningAttempts`. */
  blameMs: number
  /** While tasks of this kind were ready and none of them ran. */
  heldMs: number
  heldAt: number
  /** The highest of its tasks. */
  priority: number
}

/** An attempt that runs or is blocked. */
export interface Attempt {
  readonly task: number
  readonly kind: KindStatistics
  readonly attempt: number
  node: number
  lane: number
  readonly cpus: number
  readonly startedAt: number
  /** Since when it runs, if it does: its start or the last time it was resumed. */
  since: number
  ranMs: number
  isBlocked: boolean
  blameAt: number
}

/** To be called before the numbers of its ready and running tasks change. */
export function countHeld(kind: KindStatistics, now: number): void {
  if (kind.ready > 0 && kind.running === 0) kind.heldMs += now - kind.heldAt
  kind.heldAt = now
}

/** Since when the one that runs longest has done so; `now` if none runs. Looks at all: not for each event. */
export function longestSince(attempts: ReadonlyMap<number, Attempt>, now: number): number {
  let since = now
  for (const attempt of attempts.values()) {
    if (!attempt.isBlocked && attempt.since < since) since = attempt.since
  }
  return since
}

/** Adds what an attempt used that ran so long. */
export function addUsage(kind: KindStatistics, usage: TaskUsage, ranMs: number): void {
  kind.measured++
  kind.measuredMs += ranMs
  kind.cpuMs += usage.cpuMs
  kind.peakBytes = Math.max(kind.peakBytes, usage.peakBytes)
  kind.askedBytes += usage.askedBytes
  kind.readBytes += usage.readBytes
  kind.writtenBytes += usage.writtenBytes
}

/** For each task, so each step by its name: a loop over names takes ten times as long. */
export function addSteps(kind: KindStatistics, steps: AttemptSteps): void {
  kind.stepped++
  const sums = kind.stepsMs
  sums.fetch += steps.fetch
  sums.queue += steps.queue
  sums.decode += steps.decode
  sums.run += steps.run
  sums.wait += steps.wait
  sums.encode += steps.encode
  sums.report += steps.report
  sums.commit += steps.commit
}

/**
 * The share of the bytes asked for that came from the page cache; null when too few were asked for to mean
 * anything. Devices may read ahead more than was asked for, so it cannot be below 0.
 */
export function cacheHitRate({ askedBytes, readBytes, measured }: KindStatistics): number | null {
  // A program that only starts reads some tens of KB of its libraries.
  if (askedBytes <= measured * STARTING_BYTES) return null
  return Math.max(0, 1 - readBytes / askedBytes)
}

const STARTING_BYTES = 100_000

export function emptyKind(kind: number, name: string): KindStatistics {
  return {
    kind,
    name,
    submitted: 0,
    waiting: 0,
    ready: 0,
    running: 0,
    blocked: 0,
    done: 0,
    failed: 0,
    cancelled: 0,
    ignored: 0,
    kept: 0,
    upToDate: 0,
    retried: 0,
    busyMs: 0,
    longestMs: 0,
    measured: 0,
    measuredMs: 0,
    cpuMs: 0,
    peakBytes: 0,
    askedBytes: 0,
    readBytes: 0,
    writtenBytes: 0,
    stepped: 0,
    stepsMs: { fetch: 0, queue: 0, decode: 0, run: 0, wait: 0, encode: 0, report: 0, commit: 0 },
    blameMs: 0,
    heldMs: 0,
    heldAt: 0,
    priority: -Infinity,
  }
}
