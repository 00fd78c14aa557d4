import { SpinBackoff } from '../../general/spin-backoff.ts'

/** How long to look for the results of short tasks before going to sleep; milliseconds. */
const POLLING = 0.1

/**
 * The results of short tasks are there before a thread could wake us, and waking takes several times as long
 * as such a task: so look for them for a moment, in turn with the other work of the program.
 */
export class ResultPolling {
  readonly #drain: (looksAgain: boolean) => void
  readonly #backoff = new SpinBackoff()
  #until = 0
  #isAsked = false
  #isOn = false
  /** Results so far. */
  #results = 0

  constructor(drain: (looksAgain: boolean) => void) {
    this.#drain = drain
  }

  get isOn(): boolean {
    return this.#isOn
  }

  found(): void {
    this.#results++
  }

  /** For another moment from now. */
  extend(): void {
    this.#isAsked = true
    if (this.#isOn || !this.#backoff.maySpin) return
    this.#isOn = true
    const before = this.#results
    const look = (): void => {
      const now = performance.now()
      if (this.#isAsked) this.#until = now + POLLING
      this.#isAsked = false
      this.#isOn = now < this.#until
      this.#drain(this.#isOn)
      if (this.#isOn) setImmediate(look)
      else if (this.#results > before) this.#backoff.found()
      else this.#backoff.spunInVain()
    }
    setImmediate(look)
  }
}
