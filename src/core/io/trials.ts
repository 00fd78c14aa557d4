import { CAREFUL } from './level.ts'

/**
 * What is tried to find the bandwidth that tasks of a kind should ask for. A trial runs as many tasks at one
 * time as its bandwidth allows and nothing else on the device, and ends when they have ended.
 */

/** A bandwidth and how many tasks may run with it at one time. */
export interface Rung {
  readonly bandwidth: number
  readonly concurrency: number
}

/** A rung that was tried, and the milliseconds that a task took. */
export interface Trial extends Rung {
  readonly mean: number
}

export interface Bounds {
  readonly min: number
  readonly max: number
  readonly delta: number
}

/** A quotient that is whole but for rounding must not lose one. */
const wholePart = (quotient: number): number => Math.floor(quotient * (1 + 1e-9))

/**
 * The bandwidths to be tried, lowest first. Without bounds: from what allows every executor to run, doubled
 * each time. With bounds: from `min` to `max`, times `delta` each time.
 */
export function ladder(limit: number, executors: number, bounds: Bounds | null): Rung[] {
  const rungs: Rung[] = []
  const first = bounds ? bounds.min : limit / executors
  const last = Math.min(limit, bounds ? bounds.max : limit) * (1 + 1e-9)
  const factor = bounds ? Math.max(bounds.delta, 1.01) : 2
  for (let bandwidth = first; bandwidth <= last; bandwidth *= factor) {
    const concurrency = Math.min(executors, Math.max(1, wholePart(limit / bandwidth)))
    rungs.push({ bandwidth, concurrency })
  }
  return rungs
}

/** The rung that lets about this number of tasks run at one time. */
export const nearestTo = (tasks: number, rungs: readonly Rung[]): Rung | undefined =>
  rungs.reduce<Rung | undefined>((best, rung) => {
    const off = ({ concurrency }: Rung): number => Math.abs(Math.log(concurrency / Math.max(1, tasks)))
    return best && off(best) <= off(rung) ? best : rung
  }, undefined)

/** Whether doubling the bandwidth has at least halved the time. */
export const hasHalved = (trials: readonly Trial[]): boolean => {
  const [before, last] = trials.slice(-2)
  return !before || !last || last.mean <= before.mean / 2
}

/** A gain in throughput that is worth more tasks at one time. */
const GAIN = 1.03

const throughput = ({ concurrency, mean }: Trial): number => concurrency / mean

/** The trial with the highest throughput; more tasks at one time must be worth it. */
export const fastest = (trials: readonly Trial[]): Trial =>
  [...trials]
    .sort((a, b) => a.concurrency - b.concurrency)
    .reduce((a, b) => (throughput(b) > throughput(a) * GAIN ? b : a))

/**
 * The time that `tasks` tasks would take: full groups, and a rest that runs as the nearest larger group that
 * was tried.
 */
export function timeFor(tasks: number, trial: Trial, trials: readonly Trial[]): number {
  const groups = Math.floor(tasks / trial.concurrency)
  const rest = tasks % trial.concurrency
  let restTime = 0
  if (rest > 0) {
    let nearest = trial
    for (const one of trials) {
      if (one.concurrency >= rest && one.concurrency < nearest.concurrency) nearest = one
    }
    restTime = nearest.mean
  }
  return groups * trial.mean + restTime
}

/**
 * The trial with which this number of tasks would end first; among equals the one of highest bandwidth. `worth`: by which factor
 * it must be faster than one of higher bandwidth, where times are not known exactly.
 */
export function bestFor(
  tasks: number,
  trials: readonly Trial[],
  worth: (trial: Trial) => number = () => 1,
): Trial | null {
  let best: Trial | null = null
  let least = Infinity
  for (const trial of [...trials].sort((a, b) => b.bandwidth - a.bandwidth)) {
    const time = timeFor(tasks, trial, trials)
    if (best && time * worth(trial) >= least) continue
    best = trial
    least = time
  }
  return best
}

/** Of many tasks at one time a few show little: those that came first had the device more for themselves. */
export const worthOfFew = ({ concurrency }: Trial): number => (concurrency > CAREFUL ? 1.1 : GAIN)
