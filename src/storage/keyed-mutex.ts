/** Runs the actions on one key one after the other. */
export class KeyedMutex<T extends object> {
  readonly #last = new WeakMap<T, Promise<unknown>>()

  /** Settles when the actions that are queued now have ended. */
  pending(key: T): Promise<unknown> | undefined {
    return this.#last.get(key)
  }

  /** Resolves when no action is queued, also none that came while this waited. */
  async idle(key: T): Promise<void> {
    for (let last: unknown = null, now = this.pending(key); now && now !== last; now = this.pending(key)) {
      await now
      last = now
    }
  }

  run<R>(key: T, action: () => Promise<R>): Promise<R> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const run = before.then(action)
    const ended = run.then(
      () => undefined,
      () => undefined,
    )
    this.#last.set(key, ended)
    return run
  }
}
