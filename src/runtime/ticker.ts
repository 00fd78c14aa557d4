/** Looks after results that were not announced and after lanes that got stuck; milliseconds. */
const TICK = 10
/** The same while nothing depends on it: waking costs what a short task does. */
const REST = 50

/** A timer that runs, and keeps the process alive, while tasks are alive. */
export class Ticker {
  readonly #tick: () => boolean
  #timer: NodeJS.Timeout | null = null

  /** `tick` returns whether the next one is to come soon. */
  constructor(tick: () => boolean) {
    this.#tick = tick
  }

  keepAlive(needed: boolean): void {
    if (needed) this.#timer ??= setTimeout(this.#run, TICK)
    else if (this.#timer) {
      clearTimeout(this.#timer)
      this.#timer = null
    }
  }

  readonly #run = (): void => {
    // Before the tick: what it decides may end the run, and this timer.
    this.#timer = setTimeout(this.#run, REST)
    const isSoon = this.#tick()
    if (!isSoon || !this.#timer) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#run, TICK)
  }
}
