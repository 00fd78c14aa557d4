/** What is done with a thing, one after the other. */
export class Turns<T extends object> {
  readonly #last = new WeakMap<T, Promise<unknown>>()

  /** When all that is being done with it now has been done. */
  now(thing: T): Promise<unknown> | undefined {
    return this.#last.get(thing)
  }

  /** Nobody is at work on it. */
  async over(thing: T): Promise<void> {
    for (let last: unknown = null, now = this.now(thing); now && now !== last; now = this.now(thing)) {
      await now
      last = now
    }
  }

  take<R>(thing: T, action: () => Promise<R>): Promise<R> {
    const before = this.#last.get(thing) ?? Promise.resolve()
    const run = before.then(action)
    const ended = run.then(
      () => undefined,
      () => undefined,
    )
    this.#last.set(thing, ended)
    return run
  }
}
