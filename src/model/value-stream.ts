import type { Datum } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import { currentClient } from './client.ts'
import type { Future } from './future.ts'

/**
 * What a call of a generator task returns: its values, as they come. `for await` over it gives a future of
 * each (which TypeScript shows as the value: it takes `for await` to wait for what it gives; write
 * `await`, or pass it on); passed to a task, that task gets the values themselves, with `for await`. It can
 * be taken once.
 */
export class Stream<T> implements AsyncIterable<Future<T>> {
  /** @internal */
  readonly datum: Datum
  #takenBy: string | null = null
  #call: object | null = null

  /** @internal */
  constructor(datum: Datum) {
    this.datum = datum
  }

  [Symbol.asyncIterator](): AsyncIterator<Future<T>, undefined, void> {
    this.takeFor('a loop')
    return currentClient().iterate(this) as AsyncIterator<Future<T>, undefined, void>
  }

  /**
   * Values that one has taken are gone for others, so there can be one only. Returns false when it is the same call
   * that takes it, once more. @internal
   */
  takeFor(by: string, call: object | null = null): boolean {
    if (call !== null && call === this.#call) return false
    if (this.#takenBy !== null) {
      throw new MillraceError(
        'MR_STREAM_TAKEN',
        `${by} wants the values of a stream that ${this.#takenBy} takes`,
      )
    }
    this.#takenBy = by
    this.#call = call
    return true
  }

  /** The call that took it was refused. @internal */
  giveBack(): void {
    this.#takenBy = this.#call = null
  }
}
