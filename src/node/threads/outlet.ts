import { MillraceError } from '../../core/errors.ts'
import { WORD, changed, hasRoom } from './early-wire.ts'
import type { GeneratorStart } from './early-wire.ts'

/** Sends the value at this index; `check` is that of all before it. Returns the checksum and the size. */
export type SendValue = (
  index: number,
  value: unknown,
  check: number,
  isKnown: boolean,
) => { check: number; size: number }

export interface Steps {
  next(): unknown
  return(value?: unknown): unknown
}

/**
 * The end of a channel at which a generator's values go in. A generator is suspended at each `yield`: while
 * there is no room it is simply not asked for the next value, and its thread runs other tasks.
 */
export class Outlet {
  readonly #start: GeneratorStart
  readonly #words: Int32Array
  readonly #send: SendValue
  readonly #waitForRoom: (items: number, bytes: number) => Promise<unknown>
  #made = 0
  #madeBytes: number
  #check = 0

  constructor(
    start: GeneratorStart,
    send: SendValue,
    waitForRoom: (items: number, bytes: number) => Promise<unknown>,
  ) {
    this.#start = start
    this.#words = new Int32Array(start.memory)
    this.#madeBytes = start.made | 0
    this.#send = send
    this.#waitForRoom = waitForRoom
  }

  /** Runs the generator to its end, or until its consumers want no more values. */
  async run(generator: Steps): Promise<undefined> {
    try {
      for (;;) {
        if (this.#isClosed) return await end(generator)
        if (!this.#hasRoom) {
          await this.#waitForRoom(this.#made, this.#madeBytes >>> 0)
          continue
        }
        const step = generator.next()
        // Without `await` where there is nothing to wait for: a generator may have millions of values.
        const { done, value } = (step instanceof Promise ? await step : step) as IteratorResult<unknown>
        if (done) break
        this.#take(value)
      }
    } catch (error) {
      await end(generator).catch(() => undefined)
      throw error
    }
    if (this.#made < this.#start.count) {
      throw changed(`it ended after ${this.#made} values, of which ${this.#start.count} were released`)
    }
  }

  get #isClosed(): boolean {
    return Atomics.load(this.#words, WORD.closed) === 1
  }

  get #hasRoom(): boolean {
    return hasRoom(this.#words, this.#start, this.#made, this.#madeBytes)
  }

  #take(value: unknown): void {
    const { count, check: expected } = this.#start
    const isKnown = this.#made < count
    const { check, size } = this.#send(this.#made, value, this.#check, isKnown)
    this.#check = check
    this.#made++
    if (!isKnown) this.#madeBytes = (this.#madeBytes + size) | 0
    if (this.#made === count && check !== expected) {
      throw changed(`its first ${count === 1 ? 'value is' : `${count} values are`} different now`)
    }
  }
}

async function end(generator: Steps): Promise<undefined> {
  const last = generator.return()
  const { done } = (last instanceof Promise ? await last : last) as IteratorResult<unknown>
  if (done === false) {
    throw new MillraceError('MR_RELEASE', 'it yielded in a `finally` although no more values are wanted')
  }
}
