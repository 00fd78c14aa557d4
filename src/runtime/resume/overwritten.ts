import type { Access, Datum } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import { jobOf } from '../../node/job.ts'
import { digestOf, hexOf } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import { ENTRY } from '../../store/format.ts'
import type { Keyed } from './keys.ts'
import type { Output } from './record.ts'
import type { Stores } from './stores.ts'

/**
 * Files that were there before the program, and that tasks write over. A program that is run again finds them as it left
 * them: what it then makes of them is not what it would have made, and the user has to know.
 */
export class Overwritten {
  readonly #stores: Stores
  readonly #sources = new WeakSet<Datum>()
  /** Those that are as an earlier run left them, and are written over once more. */
  readonly #again = new Set<string>()

  constructor(stores: Stores) {
    this.#stores = stores
  }

  /** A result is kept: what it left of a source is written down. */
  kept(task: Task, outputs: readonly Output[]): void {
    let next = 0
    for (const access of filesOf(task)) {
      const { read, write } = access
      if (!write) continue
      const output = outputs[next++]
      const path = write.datum.path
      if (path === null || !read) continue
      if (read.number === 0) this.#sources.add(write.datum)
      if (!this.#sources.has(write.datum) || !output || !('digest' in output)) continue
      this.#stores.put(ENTRY.fact, leftKey(path, output.digest), NOTHING)
    }
  }

  /** A task runs although results are looked for. */
  ran(task: Task, { inputs }: Keyed): void {
    let next = 0
    for (const { read, write } of filesOf(task)) {
      if (!read) continue
      const digest = inputs[next++]
      const path = read.datum.path
      if (!write || path === null || read.number > 0 || !digest) continue
      if (this.#stores.has(ENTRY.fact, leftKey(path, digest))) this.#again.add(path)
    }
  }

  /** What the user should know at the end. */
  lines(): string[] {
    return [...this.#again].map(
      path =>
        `${path} was as an earlier run had left it, and was written over once more: it is not what one run makes. ` +
        'Let tasks write over copies of such files.',
    )
  }
}

const filesOf = (task: Task): readonly Access[] => task.accesses.slice(0, jobOf(task).slots.length)

const leftKey = (path: string, digest: Digest): Digest => digestOf(`left ${path} ${hexOf(digest)}`)

const NOTHING = Buffer.alloc(0)
