import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Version } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import { Paths } from '../model/capture/paths.ts'
import type { Runtime } from './runtime.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  'engine' | 'files' | 'now' | 'paths' | 'schedule' | 'settled' | 'temporaries' | 'unread' | 'values'
>

/** What the program, or a running task, does with files by their paths. */
export class ProgramFiles {
  readonly #runtime: Uses

  constructor(runtime: Uses) {
    this.#runtime = runtime
  }

  async wait(path: string, toWrite = false): Promise<string> {
    const absolute = Paths.absolute(path)
    const datum = this.#runtime.paths.find(absolute) ?? this.#runtime.paths.directoryAbove(absolute)
    if (!datum && !toWrite && !existsSync(absolute)) {
      throw new MillraceError('MR_INPUT_MISSING', `${path} does not exist, and no task makes it`)
    }
    if (datum) {
      this.#runtime.temporaries.wanted(datum)
      const version = this.#runtime.engine.read(datum, this.#runtime.now())
      await this.#runtime.settled(version)
      if (version.state !== 'ready') {
        // The program may go on with the last good version: that is what it finds at the path.
        try {
          await this.#runtime.values.throwFor(version)
        } finally {
          await this.#runtime.files.tasks.publishLatest(datum, true)
        }
      }
      await this.#runtime.files.tasks.publish(version)
      if (toWrite) await this.#gone(version)
    }
    return resolve(path)
  }

  async remove(path: string): Promise<void> {
    // Of a link, the link goes, and not what it leads to.
    const absolute = Paths.entry(path)
    const datum = this.#runtime.paths.find(absolute)
    const inside = this.#takeInside(absolute)
    if (!datum) this.#expectNotMade(absolute)
    const version = datum && this.#runtime.engine.read(datum, this.#runtime.now())
    // From here on the path means another file.
    if (datum) this.#runtime.engine.remove(datum, this.#runtime.now())
    this.#runtime.schedule()
    const own = version ? this.#gone(version) : Promise.resolve()
    const gone = inside.length === 0 ? own : own.then(() => this.#allGone(inside))
    await this.#runtime.files.store.removals.remove(absolute, version, gone)
    if (version) await this.#runtime.files.deletions.done(version)
    const next = this.#runtime.paths.find(absolute)
    if (next) await this.#runtime.files.tasks.publishLatest(next)
  }

  /** The program will not use the files in the folder again; gives their last versions. */
  #takeInside(folder: string): Version[] {
    const { engine, paths } = this.#runtime
    return paths.inside(folder).map(datum => {
      const version = engine.read(datum, this.#runtime.now())
      engine.remove(datum, this.#runtime.now())
      return version
    })
  }

  /** A part of a directory can be removed when that is in its place, and no task reads it. */
  #expectNotMade(path: string): void {
    const above = this.#runtime.paths.directoryAbove(path)
    if (!above) return
    const { current } = above
    const { store } = this.#runtime.files
    if (current.settled && current.readers === 0 && !store.locations.of(current).isAside) return
    throw new MillraceError('MR_ALIAS', `${path} is inside ${above.path}, which tasks make or read`, {
      hint: 'waitOnFile() the directory first, or remove it in a task to which the directory is DIR_INOUT.',
    })
  }

  async #allGone(versions: readonly Version[]): Promise<void> {
    for (const version of versions) {
      await this.#gone(version)
      await this.#runtime.files.deletions.done(version)
    }
    this.#runtime.files.store.tidy()
  }

  /** The version, or what is at its path, has no readers any more. */
  async #gone(version: Version): Promise<void> {
    await this.#runtime.settled(version)
    await this.#runtime.unread(version)
    const { places } = this.#runtime.files.store
    for (let at = places.readAt(version.datum); at; at = places.readAt(version.datum))
      await this.#runtime.unread(at)
  }
}
