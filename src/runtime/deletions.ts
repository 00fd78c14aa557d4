import type { Version } from '../core/data.ts'
import { FileCopy } from '../storage/file-copy.ts'
import type { Runtime } from './runtime.ts'
import type { TaskFiles } from './task-files.ts'

/** Files that no task will read any more: they are deleted aside, and whoever counts on their room can wait for it. */
export class Deletions {
  readonly #runtime: Runtime
  readonly #files: TaskFiles
  readonly #running = new Map<Version, Promise<void>>()
  readonly #waiting = new Map<Version, (() => void)[]>()

  constructor(runtime: Runtime, files: TaskFiles) {
    this.#runtime = runtime
    this.#files = files
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
      this.#runtime.engine.io.gone(version)
      this.#runtime.schedule()
      await this.#files.publishLatest(version.datum)
    } catch {
      // What cannot be deleted still takes its room.
    }
  }

  /** The version and those before it, which no task will read, take no room any more. */
  async done(last: Version): Promise<void> {
    for (let version: Version | null = last; version; version = version.previous) {
      const running = this.#running.get(version)
      // A copy that is on its way to another device is deleted when it has arrived.
      if (running) await running
      else if (version.value instanceof FileCopy && version.obsolete) await this.#deletionOf(version)
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
