import type { RunEvent } from '../core/events.ts'
import { argumentsText } from '../model/arguments-text.ts'

/** Tasks of which this is told in a second. A text takes about a microsecond, and short tasks come by the hundred thousand. */
const PER_SECOND = 2000

/** Tells observers what tasks are called with: a page shows it. Where tasks come faster, the first of each second are told. */
export class ArgumentNotes {
  readonly #tell: (event: RunEvent) => void
  #second = -1
  #told = 0

  constructor(tell: (event: RunEvent) => void) {
    this.#tell = tell
  }

  called(task: number, given: readonly unknown[], at: number): void {
    const second = Math.floor(at / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#told = 0
    }
    if (given.length === 0 || this.#told === PER_SECOND) return
    this.#told++
    this.#tell({ type: 'arguments', at, task, text: argumentsText(given) })
  }
}
