import { readFileSync, readdirSync } from 'node:fs'

/** CPU time that processes have had, thread by thread, in milliseconds. It has to look while they live. */
export class CpuTimes {
  readonly #had = new Map<number, Map<number, number>>()

  look(pid: number): void {
    const threads = this.#had.get(pid) ?? new Map<number, number>()
    this.#had.set(pid, threads)
    for (const thread of threadsOf(pid)) {
      // The time on a CPU, in nanoseconds, comes first.
      const [nanoseconds] = read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')
      if (nanoseconds) threads.set(thread, Number(nanoseconds) / 1e6)
    }
  }

  of(pid: number): number {
    return [...(this.#had.get(pid)?.values() ?? [])].reduce((sum, ms) => sum + ms, 0)
  }

  /** Of its first thread. */
  ofMain(pid: number): number {
    return this.#had.get(pid)?.get(pid) ?? 0
  }

  get total(): number {
    return [...this.#had.keys()].reduce((sum, pid) => sum + this.of(pid), 0)
  }
}

export const childrenOf = (pid: number): number[] =>
  threadsOf(pid).flatMap(thread =>
    read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  )

export const commandLine = (pid: number): string => read(`/proc/${pid}/cmdline`)

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    // It has ended.
    return []
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}
