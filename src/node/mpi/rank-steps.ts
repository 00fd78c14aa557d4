import { MillraceError } from '../../core/errors.ts'
import type { Steps } from '../threads/outlet.ts'

/** A generator in a rank: it is asked for a value when the coordinator says so, at the same time as in the other ranks. */
export class RankSteps {
  /** Answers that came before they were waited for. */
  readonly #asked: boolean[] = []
  #wake: ((isWanted: boolean) => void) | null = null

  /** The next value is wanted, or no more. */
  ask(isWanted: boolean): void {
    const wake = this.#wake
    this.#wake = null
    if (wake) wake(isWanted)
    else this.#asked.push(isWanted)
  }

  /** Runs it to its end; `send` gets each value with its number. */
  async run(generator: Steps, send: (step: number, value: unknown) => void): Promise<void> {
    for (let step = 0; ; step++) {
      const isWanted = this.#asked.shift() ?? (await new Promise<boolean>(resolve => (this.#wake = resolve)))
      if (!isWanted) {
        const { done } = (await generator.return()) as IteratorResult<unknown>
        if (done !== false) return
        throw new MillraceError('MR_RELEASE', 'it yielded in a `finally` although no more values are wanted')
      }
      const { done, value } = (await generator.next()) as IteratorResult<unknown>
      if (done) return
      send(step, value)
    }
  }
}
