import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

interface LoggedTask {
  id: number
  attempt: number
}

const logName = ({ id, attempt }: LoggedTask): string => `${id}.${attempt}.log`

/**
 * What a task prints goes to the terminal as usual and into the log of the task. Writing is synchronous:
 * this is a compute thread, and the lines must be there when the thread dies.
 */
export class ThreadLog {
  readonly #folder: string | null
  #descriptor: number | null = null
  #name = ''
  /** The logs of tasks that printed and have not ended. */
  readonly #written = new Set<string>()
  /** While modules are loaded: what they print, the program has printed already. */
  isQuiet = true

  constructor(folder: string | null, current: () => LoggedTask | null) {
    this.#folder = folder
    for (const stream of [process.stdout, process.stderr]) {
      const write = stream.write.bind(stream) as (...args: unknown[]) => boolean
      stream.write = ((chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
        const task = current()
        if (task && folder) this.#append(logName(task), chunk)
        if (!task && this.isQuiet) return true
        return write(chunk, ...rest)
      }) as typeof stream.write
    }
  }

  /** Whether the task that has just ended printed; forgets it. Without a task: whether any did. */
  take(task: LoggedTask | null): boolean {
    if (this.#written.size === 0) return false
    const name = task ? logName(task) : this.#name
    if (this.#descriptor !== null && this.#name === name) {
      closeSync(this.#descriptor)
      this.#descriptor = null
    }
    return this.#written.delete(name)
  }

  #append(name: string, chunk: string | Uint8Array): void {
    try {
      if (name !== this.#name || this.#descriptor === null) {
        if (this.#descriptor !== null) closeSync(this.#descriptor)
        this.#descriptor = openSync(join(this.#folder as string, name), 'a')
        this.#name = name
      }
      if (typeof chunk === 'string') writeSync(this.#descriptor, chunk)
      else writeSync(this.#descriptor, chunk)
      this.#written.add(name)
    } catch {
      // A log that cannot be written must not fail the task.
    }
  }
}
