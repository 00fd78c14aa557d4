import type { Datum } from '../core/data/datum.ts'
import { MillraceError } from '../core/errors.ts'
import { currentClient } from './client.ts'

/**
 * The result of a task call. Pass it to another task and that task waits for it; `await` it to have the
 * value. It stands for the value itself: INOUT on a future changes what the future gives from then on.
 */
export class Future<T> implements PromiseLike<T> {
  #datum: Datum | (() => Datum)
  /** The object that the program was given, which later waits bring up to date in place. @internal */
  object: object | null = null

  /** A datum, or what makes it when it is asked for. @internal */
  constructor(datum: Datum | (() => Datum)) {
    this.#datum = datum
  }

  /** @internal */
  get datum(): Datum {
    return typeof this.#datum === 'function' ? (this.#datum = this.#datum()) : this.#datum
  }

  /** @internal */
  wait(): Promise<T> {
    return currentClient().waitOn(this) as Promise<T>
  }

  // oxlint-disable-next-line unicorn/no-thenable -- being thenable is what a future is for
  then<A = T, B = never>(
    fulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.wait().then(fulfilled, rejected)
  }

  catch<B = never>(rejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(null, rejected)
  }

  /** A future in the place of its value is a mistake that would go unnoticed in sums, names of files and keys. */
  [Symbol.toPrimitive](): never {
    throw new MillraceError('MR_NOT_AWAITED', 'a future was used as if it were its value')
  }

  toJSON(): never {
    throw new MillraceError('MR_NOT_AWAITED', 'a future was to be written as JSON instead of its value')
  }

  finally(settled?: (() => void) | null): Promise<T> {
    return this.wait().finally(settled)
  }
}
