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
  /** Attempts that were lost and made again: not a state, and a task can be counted often. */
  retried: number
  /** Running time of all attempts; time blocked is not in it. */
  busyMs: number
  longestMs: number
  /** Lane time that lay idle while tasks of this kind ran and others waited for data; see `#advance`. */
  blameMs: number
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
    retried: 0,
    busyMs: 0,
    longestMs: 0,
    blameMs: 0,
  }
}
