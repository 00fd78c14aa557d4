import { availableParallelism } from 'node:os'

/**
 * Of the CPU time that a run could have had on this machine, its page takes at most this share by itself, … The rest up to 1% is
 * for what people ask it.
 */
const SHARE = 0.006
/** … and these milliseconds, in which its first states are made. */
const AT_ONCE = 40

/**
 * The CPU time that this process may take from a run that goes on. It grows with the run, so a page that is opened late
 * reads at once what happened before.
 */
export class Allowance {
  readonly #cpus: number
  readonly #usage: () => number
  readonly #before: number

  /** `usage`: the CPU time of this process, in milliseconds. What it took so far, for its start, is not counted. */
  constructor(cpus = availableParallelism(), usage = usageOfProcess) {
    this.#cpus = cpus
    this.#usage = usage
    this.#before = usage()
  }

  /** Milliseconds of CPU time that are left when the run is this many milliseconds old; below 0, too many were taken. */
  left(age: number): number {
    return AT_ONCE + SHARE * this.#cpus * age - this.spent
  }

  /** Milliseconds until this much is left. */
  until(amount: number, age: number): number {
    return Math.max(0, (amount - this.left(age)) / (SHARE * this.#cpus))
  }

  get spent(): number {
    return this.#usage() - this.#before
  }
}

function usageOfProcess(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
