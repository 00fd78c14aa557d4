import { loadavg, totalmem } from 'node:os'

/** How loaded a machine is, as the system counts it. */
export interface MachineUse {
  /** Memory of the process that runs tasks, with all its threads; not that of programs. Bytes. */
  readonly rss: number
  /** Memory that can still be had on the machine, or in the group of the process where that has a limit. */
  readonly available: number
  /** All memory there is, by the same measure. */
  readonly memory: number
  /** Threads that ran or waited for a CPU in the last minute. */
  readonly load: number
}

/** Between two measurements; milliseconds. */
const EVERY = 1000

export function machineUse(): MachineUse {
  const limit = process.constrainedMemory()
  const all = totalmem()
  const memory = limit > 0 ? Math.min(limit, all) : all
  return {
    rss: process.memoryUsage.rss(),
    available: Math.max(0, Math.min(memory, process.availableMemory())),
    memory,
    load: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  }
}

/** Measures this machine again and again, while that is wanted. */
export class UseMeter {
  readonly #tell: (use: MachineUse) => void
  #timer: NodeJS.Timeout | null = null

  constructor(tell: (use: MachineUse) => void) {
    this.#tell = tell
  }

  want(isWanted: boolean): void {
    if (!isWanted && this.#timer) {
      clearInterval(this.#timer)
      this.#timer = null
    }
    if (!isWanted || this.#timer) return
    const measure = (): void => this.#tell(machineUse())
    this.#timer = setInterval(measure, EVERY)
    // It keeps no process alive.
    this.#timer.unref()
    measure()
  }
}
