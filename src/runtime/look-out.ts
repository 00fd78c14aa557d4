import { Patience } from '../general/patience.ts'

/** How long to look for the results of short tasks before going to sleep; milliseconds. */
const LOOK_OUT = 0.1

/**
 * The results of short tasks are there before a thread could wake us, and waking takes several times as long
 * as such a task: so look for them for a moment, in turn with whatever else the program does.
 */
export class LookOut {
  readonly #drain: (looksAgain: boolean) => void
  readonly #patience = new Patience()
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
  keep(): void {
    this.#isAsked = true
    if (this.#isOn || !this.#patience.worthIt) return
    this.#isOn = true
    const before = this.#results
    const look = (): void => {
      const now = performance.now()
      if (this.#isAsked) this.#until = now + LOOK_OUT
      this.#isAsked = false
      this.#isOn = now < this.#until
      this.#drain(this.#isOn)
      if (this.#isOn) setImmediate(look)
      else if (this.#results > before) this.#patience.found()
      else this.#patience.foundNothing()
    }
    setImmediate(look)
  }
}
