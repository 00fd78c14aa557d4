import type { Version } from '../../core/data/datum.ts'
import { Location } from '../../storage/location.ts'
import type { TaskFiles } from './task-files.ts'

/** Files that no task will read any more: they are deleted in the background. Callers that need their room can wait for it. */
export class Deletions {
  readonly #files: TaskFiles
  readonly #gone: (version: Version) => void
  readonly #stays: (version: Version) => void
  readonly #running = new Map<Version, Promise<void>>()
  readonly #waiting = new Map<Version, (() => void)[]>()

  /** `gone` and `stays` hear what became of the room that a version took. */
  constructor(files: TaskFiles, gone: (version: Version) => void, stays: (version: Version) => void) {
    this.#files = files
    this.#gone = gone
    this.#stays = stays
  }

  begin(version: Version): void {
    const done = this.#delete(version).finally(() => {
      this.#running.delete(version)
      for (const go of this.#waiting.get(version) ?? []) go()
      this.#waiting.delete(version)
    })
    this.#running.set(version, done)
  }

  async #delete(version: Version): Promise<void> {
    try {
      await this.#files.store.discard(version)
      this.#gone(version)
      await this.#files.publishLatest(version.datum)
    } catch {
      // What cannot be deleted still takes its room.
      this.#stays(version)
    }
  }

  /** The version and those before it, which no task will read, take no room any more. */
  async done(last: Version): Promise<void> {
    for (let version: Version | null = last; version; version = version.previous) {
      const running = this.#running.get(version)
      // A copy that is on its way to another device is deleted when it has arrived.
      if (running) await running
      else if (version.value instanceof Location && version.obsolete) {
        void this.#files.unread(version)
        await this.#deletionOf(version)
      }
    }
  }

  #deletionOf(version: Version): Promise<void> {
    return new Promise(resolve => {
      const waiting = this.#waiting.get(version)
      if (waiting) waiting.push(resolve)
      else this.#waiting.set(version, [resolve])
    })
  }
}
