import type { Datum, Version } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import { Future } from './future.ts'
import type { Tracker } from './tracker.ts'
import { bringUpToDate } from './up-to-date.ts'
import { Stream } from './value-stream.ts'

type Take = (value: unknown) => void

/**
 * Gives the value of a datum once it is there; `seen` is the version that the program's object has the value of, if it
 * has one. Calls back at once only with what is no object: whatever may run code of the user comes after a promise.
 * Promises would do, but a program may wait for a million futures, and four promises each cost more than the tasks.
 */
export type Fetch = (datum: Datum, seen: Version | null, take: Take, fail: Take) => void

export const fetchBy =
  (get: (datum: Datum) => Promise<unknown>): Fetch =>
  (datum, _seen, take, fail) =>
    void get(datum).then(take).catch(fail)

/** Waits for a value and for what is inside it, and brings objects up to date in place. */
export function resolveInside(value: unknown, tracker: Tracker, fetch: Fetch): Promise<unknown> {
  if (typeof value !== 'object' || value === null) return Promise.resolve(value)
  const wait = new Wait(tracker, fetch)
  const all = new Promise((take, fail) => wait.resolve(value, take, fail))
  return value instanceof Future ? all : all.finally(() => wait.fillIn())
}

/** One call of `waitOn`. */
class Wait {
  readonly #tracker: Tracker
  readonly #fetch: Fetch
  #entered: Set<object> | null = null
  /** What has come, to be put in its places when all has: that may run code of the user. */
  readonly #holders: Holder[] = []

  constructor(tracker: Tracker, fetch: Fetch) {
    this.#tracker = tracker
    this.#fetch = fetch
  }

  resolve(value: object, take: Take, fail: Take): void {
    try {
      this.#resolve(value, take, fail)
    } catch (error) {
      fail(error)
    }
  }

  fillIn(): void {
    for (const { object, keys, values } of this.#holders) {
      keys.forEach((key, at) => {
        if (values[at] !== UNCHANGED) object[key] = values[at]
      })
    }
  }

  #resolve(value: object, take: Take, fail: Take): void {
    if (value instanceof Future) return this.#future(value, take, fail)
    if (value instanceof Stream) throw noValue()
    this.#tracker.rejectPart(value)
    const tracked = this.#tracker.find(value)
    if (tracked) {
      const { datum } = tracked
      if (datum.inPlace) return this.#fetch(datum, null, () => take(value), fail)
      if (!tracked.dirty) return take(value)
      const writes = this.#tracker.writesOf(datum)
      return this.#fetchAgain(value, datum, fail, latest => {
        bringUpToDate(value, latest)
        this.#tracker.adopt(value, datum, writes)
        take(value)
      })
    }
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== Array.prototype && prototype !== Object.prototype && prototype !== null)
      return take(value)
    // An object that holds itself is waited for once; whoever entered it first does.
    if (this.#entered?.has(value)) return take(value)
    ;(this.#entered ??= new Set()).add(value)
    // What is frozen cannot be filled in.
    const object = Object.isFrozen(value) ? copyOf(value) : value
    this.#inside(object as Record<string, unknown>, () => take(object), fail)
  }

  /** All are waited for, then the first failure is thrown: no wait is left behind. */
  #inside(object: Record<string, unknown>, done: () => void, fail: Take): void {
    const keys = Object.keys(object).filter(key => typeof object[key] === 'object' && object[key] !== null)
    if (keys.length === 0) return done()
    const values: unknown[] = keys.map(() => UNCHANGED)
    this.#holders.push({ object, keys, values })
    let left = keys.length
    let failedAt = Infinity
    let failure: unknown
    const settled = (): void => {
      if (--left > 0) return
      if (failedAt === Infinity) done()
      else fail(failure)
    }
    keys.forEach((key, at) => {
      const item = object[key] as object
      this.resolve(
        item,
        resolved => {
          if (resolved !== item) values[at] = resolved
          settled()
        },
        error => {
          if (at < failedAt) [failedAt, failure] = [at, error]
          settled()
        },
      )
    })
  }

  #future(future: Future<unknown>, take: Take, fail: Take): void {
    const { object, datum } = future
    if (object && !(this.#tracker.find(object)?.dirty ?? false)) return take(object)
    const writes = this.#tracker.writesOf(datum)
    const arrived = (latest: unknown): void => {
      if (typeof latest !== 'object' || latest === null) return take(latest)
      if (future.object) {
        // Someone else waited meanwhile, or an earlier wait gave the program this object.
        if (this.#tracker.find(future.object)?.dirty) bringUpToDate(future.object, latest)
      } else future.object = latest
      this.#tracker.adopt(future.object, datum, writes)
      take(future.object)
    }
    if (object) this.#fetchAgain(object, datum, fail, arrived)
    else this.#fetch(datum, null, arrived, fail)
  }

  /** What the program has of it becomes what it was before when the newer value fails. */
  #fetchAgain(object: object, datum: Datum, fail: Take, take: Take): void {
    const seen = this.#tracker.find(object)?.seen ?? null
    const fellBack = (error: unknown): void => {
      this.#tracker.fellBack(object)
      fail(error)
    }
    this.#fetch(datum, seen, take, fellBack)
  }
}

/** An array or plain object, and what is to be at some of its keys. */
interface Holder {
  object: Record<string, unknown>
  keys: string[]
  values: unknown[]
}

const UNCHANGED = Symbol('unchanged')

const copyOf = (value: object): object => (Array.isArray(value) ? [...(value as unknown[])] : { ...value })

const noValue = (): MillraceError =>
  new MillraceError('MR_NOT_AWAITED', 'a stream has no value to wait for, but many', {
    hint: 'Loop over it with `for await`, or pass it to a task.',
  })
