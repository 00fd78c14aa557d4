/**
 * Notices what the program sets in `process.env`: threads have copies of it, and some are older than others. The only
 * way to hear of a change without reading all of it before each task is to be in between.
 */
export class EnvironmentWatch {
  /** Grows with each change. */
  version = 0
  readonly #changed = new Map<string, string | undefined>()
  readonly #original = process.env
  readonly #watched: NodeJS.ProcessEnv

  constructor() {
    const note = (key: string | symbol, isDone: boolean): boolean => {
      if (isDone && typeof key === 'string') {
        this.version++
        this.#changed.set(key, this.#original[key])
      }
      return isDone
    }
    this.#watched = new Proxy(this.#original, {
      set: (target, key, value) => note(key, Reflect.set(target, key, value)),
      defineProperty: (target, key, facts) => note(key, Reflect.defineProperty(target, key, facts)),
      deleteProperty: (target, key) => note(key, Reflect.deleteProperty(target, key)),
    })
    process.env = this.#watched
  }

  /** All variables that have changed since the beginning; undefined for those that are gone. */
  changes(): [string, string | undefined][] {
    return [...this.#changed]
  }

  end(): void {
    if (process.env === this.#watched) process.env = this.#original
  }
}
