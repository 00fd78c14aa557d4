import type { Version } from '../core/data/datum.ts'
import type { Task } from '../core/tasks/task.ts'
import { Stored } from '../model/encoding/stored.ts'
import type { Runtime } from './runtime.ts'

/** Smaller values are not told of: there may be millions, and together they take little. */
export const LARGE_VALUE = 64 * 1024

/** What it uses of the runtime. */
type Uses = Pick<Runtime, 'engine' | 'lineage' | 'now'>

/** Tells observers which large values are in memory. */
export class LargeValues {
  readonly #runtime: Uses
  /** Those that were told of and have not been dropped. */
  readonly #told = new Set<number>()

  constructor(runtime: Uses) {
    this.#runtime = runtime
  }

  /** The task has ended well, and what it made is in its versions. */
  finished(task: Task): void {
    if (!this.#runtime.engine.observer) return
    for (const { read, write } of task.accesses) {
      // A task that is the only reader of a value and writes it takes its memory.
      if (read && this.#told.size > 0 && read.value === undefined) this.dropped(read)
      if (write) this.made(write)
    }
  }

  /** The version has its value. */
  made(version: Version): void {
    const { engine, lineage } = this.#runtime
    const { id, value } = version
    if (!engine.observer || !(value instanceof Stored)) return
    const bytes = sizeOf(value)
    if (bytes < LARGE_VALUE) return
    this.#told.add(id)
    const event = { type: 'value', at: this.#runtime.now(), version: id, bytes } as const
    engine.observer(lineage.isAway(version) ? { ...event, stays: true } : event)
  }

  /** It is dropped, or about to be. */
  dropped({ id }: Version): void {
    if (!this.#told.delete(id)) return
    this.#runtime.engine.observer?.({ type: 'value', at: this.#runtime.now(), version: id, bytes: 0 })
  }
}

function sizeOf({ bytes, blobs }: Stored): number {
  let size = bytes.length
  for (const blob of blobs) size += blob.byteLength
  return size
}
