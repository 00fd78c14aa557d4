import { stat } from 'node:fs/promises'
import type { Access, Version } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import type { Task } from '../../core/tasks/task.ts'
import { changed } from '../threads/early-wire.ts'
import type { Question } from '../threads/protocol.ts'
import type { FileStore } from '../../storage/file-store.ts'
import { Location } from '../../storage/location.ts'
import { sameFile } from '../../storage/same-file.ts'
import type { Attempt } from '../attempt.ts'
import { attemptOf } from '../job.ts'

type Facts = Extract<Question, { ask: 'committed' }>

/** Output files that tasks release before they end, by `committed(path)`. */
export class EarlyFiles {
  readonly #files: FileStore
  readonly #release: (task: Task, version: Version) => void
  readonly #released = new WeakMap<Attempt, { write: Version; facts: Facts }[]>()

  constructor(files: FileStore, release: (task: Task, version: Version) => void) {
    this.#files = files
    this.#release = release
  }

  /** Puts the output in its place, whole, and lets its readers start. */
  async commit(task: Task, facts: Facts): Promise<void> {
    const attempt = attemptOf(task)
    // On a node without our folders it comes with the end of the task.
    if (attempt.seen) return
    const slot = attempt.paths?.indexOf(facts.path) ?? -1
    const { write, mode } = (task.accesses[slot] ?? { write: null, mode: 'in' }) as Access
    const before = this.#released.get(attempt) ?? []
    const refuse = (why: string): never => {
      throw new MillraceError('MR_RELEASE', `committed('${facts.path}') in ${task.name}: ${why}`)
    }
    if (before.some(one => one.facts.path === facts.path)) refuse('it was released before')
    if (!write) return refuse('this is not the path of an output of the task')
    if (mode === 'concurrent' || mode === 'commutative') refuse('several tasks write this file together')
    this.#released.set(attempt, [...before, { write, facts }])
    if (write.settled) await this.expectSame(write, facts.path)
    else await this.#files.commit(write, facts.path)
    // From here on it is not a file of this attempt: it is neither committed at its end nor dropped.
    if (attempt.paths) attempt.paths[slot] = null
    this.#release(task, write)
  }

  /** Another attempt has made a file that was released before: it must be the same, and goes. */
  async expectSame(write: Version, path: string): Promise<void> {
    const { value, datum } = write
    const isSame =
      value instanceof Location && !write.obsolete && (await sameFile(value.path, path).catch(() => false))
    if (!isSame) throw changed(`${datum.path} is different now, or cannot be compared any more`)
    await this.#files.drop(path)
  }

  /** Readers may have seen what was in the file when it was released: the task must have left it so. */
  async expectUntouched(task: Task): Promise<void> {
    for (const { write, facts } of this.#released.get(attemptOf(task)) ?? []) {
      const now = await stat(this.#files.pathOf(write)).catch(() => null)
      // Another task may have replaced it since.
      if (now?.ino !== facts.file || (now.size === facts.size && now.mtimeMs === facts.modified)) continue
      throw new MillraceError(
        'MR_RELEASE',
        `${task.name} wrote ${write.datum.path} after it had released it by committed()`,
      )
    }
  }
}
