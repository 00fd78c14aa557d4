import type { Datum, Version } from '../../core/data/datum.ts'
import { MillraceError } from '../../core/errors.ts'
import { CancelledError, TaskError } from '../errors.ts'
import type { Graph } from '../encoding/identity.ts'
import { Future } from '../future.ts'
import { Holder, isContainer } from './parts.ts'
import type { Tracker } from './tracker.ts'
import { Stream } from '../value-stream.ts'

type Take = (value: unknown) => void
/** The objects of the value come with it; see encoding/identity.ts. */
type TakeGraph = (value: unknown, graph: Graph | null) => void

/**
 * Gives the value of a datum once it is there; `seen` is the version that the program's object has the value of, if it
 * has one. Calls back synchronously only with primitives: what may run code of the user comes after a promise.
 * Promises would do, but a program may wait for a million futures, and four promises each cost more than the tasks.
 */
export type Fetch = (datum: Datum, seen: Version | null, take: TakeGraph, fail: Take) => void

export const fetchBy =
  (get: (datum: Datum) => Promise<{ value: unknown; graph: Graph | null }>): Fetch =>
  (datum, _seen, take, fail) =>
    void get(datum)
      .then(({ value, graph }) => take(value, graph))
      .catch(fail)

/**
 * Waits for a value and for what is inside it, and brings objects up to date in place. `isOwnOnly`: futures and streams
 * in it stay what they are.
 */
export function resolveInside(
  value: unknown,
  tracker: Tracker,
  fetch: Fetch,
  isOwnOnly = false,
): Promise<unknown> {
  if (typeof value !== 'object' || value === null) return Promise.resolve(value)
  const wait = new Wait(tracker, fetch, isOwnOnly)
  const all = new Promise((take, fail) => wait.resolve(value, take, fail))
  return value instanceof Future ? all : all.finally(() => wait.fillIn())
}

/** One call of `waitOn`. */
class Wait {
  readonly #tracker: Tracker
  readonly #fetch: Fetch
  readonly #isOwnOnly: boolean
  #entered: Set<object> | null = null
  /** What has come, to be put in its places when all has: that may run code of the user. */
  readonly #holders: Holder[] = []

  constructor(tracker: Tracker, fetch: Fetch, isOwnOnly: boolean) {
    this.#tracker = tracker
    this.#isOwnOnly = isOwnOnly
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
    for (const holder of this.#holders) holder.fillIn()
  }

  #resolve(value: object, take: Take, fail: Take): void {
    if (value instanceof Future) return this.#isOwnOnly ? take(value) : this.#future(value, take, fail)
    if (value instanceof Stream) {
      if (this.#isOwnOnly) return take(value)
      throw noValue()
    }
    const whole = this.#tracker.objects.wholeOf(value)
    if (whole) return this.resolve(whole.root, () => take(value), fail)
    this.#tracker.objects.rejectPart(value)
    const tracked = this.#tracker.objects.find(value)
    if (tracked) {
      const { datum } = tracked
      if (datum.inPlace) return this.#fetch(datum, null, () => take(value), fail)
      if (tracked.dirty) {
        const writes = this.#tracker.objects.writesOf(datum)
        return this.#fetchAgain(value, datum, fail, (_latest, graph) => {
          this.#tracker.objects.arrived(value, datum, writes, graph)
          take(value)
        })
      }
    }
    // Parts of it may be written by tasks, or be futures.
    if (!isContainer(value) && !this.#tracker.isKnownClass(value)) return take(value)
    // An object that holds itself is waited for once, by the first visit.
    if (this.#entered?.has(value)) return take(value)
    ;(this.#entered ??= new Set()).add(value)
    // What is frozen cannot be filled in.
    const object = Object.isFrozen(value) && isList(value) ? copyOf(value) : value
    this.#inside(object, () => take(object), fail)
  }

  /**
   * All are waited for, then the first failure is thrown: no wait is left behind. What was cancelled because another of them
   * failed is not the failure, that one is: which of the others had ended by then is chance.
   */
  #inside(object: object, done: () => void, fail: Take): void {
    const holder = new Holder(object)
    const { items } = holder
    if (items.length === 0) return done()
    this.#holders.push(holder)
    let left = items.length
    const failures: { at: number; error: unknown }[] = []
    const settled = (): void => {
      if (--left > 0) return
      if (failures.length === 0) return done()
      fail(causeAmong(failures.sort((a, b) => a.at - b.at).map(({ error }) => error)))
    }
    items.forEach((item, at) => {
      this.resolve(
        item,
        resolved => {
          holder.put(item, resolved)
          settled()
        },
        error => {
          failures.push({ at, error })
          settled()
        },
      )
    })
  }

  #future(future: Future<unknown>, take: Take, fail: Take): void {
    const { object, datum } = future
    if (object && !(this.#tracker.objects.find(object)?.dirty ?? false)) return take(object)
    const writes = this.#tracker.objects.writesOf(datum)
    const arrived = (latest: unknown, graph: Graph | null): void => {
      if (typeof latest !== 'object' || latest === null) return take(latest)
      // Someone else may have waited meanwhile, or an earlier wait gave the program its object.
      if (future.object) this.#tracker.objects.arrived(future.object, datum, writes, graph)
      else {
        future.object = latest
        this.#tracker.objects.adopt(latest, datum, writes, graph?.objects ?? null)
      }
      take(future.object)
    }
    if (object) this.#fetchAgain(object, datum, fail, arrived)
    else this.#fetch(datum, null, arrived, fail)
  }

  /** What the program has of it becomes what it was before when the newer value fails. */
  #fetchAgain(object: object, datum: Datum, fail: Take, take: TakeGraph): void {
    const { seen = null, held = null } = this.#tracker.objects.find(object) ?? {}
    const fellBack = (error: unknown): void => {
      this.#tracker.objects.fellBack(object)
      // What failed was to write these, too: they fall back with it.
      let left = held?.length ?? 0
      if (left === 0) return fail(error)
      const settled = (): void => void (--left === 0 && fail(error))
      for (const { own } of held ?? []) this.resolve(own?.[0] ?? object, settled, settled)
    }
    this.#fetch(datum, seen, take, fellBack)
  }
}

/** The first of these failures; or the one of them because of which the first was cancelled. */
function causeAmong(failures: readonly unknown[]): unknown {
  const [first] = failures
  if (!(first instanceof CancelledError && first.cause instanceof TaskError)) return first
  const { task } = first.cause
  return failures.find(error => error instanceof TaskError && error.task === task) ?? first
}

const isList = (value: object): boolean => !(value instanceof Map || value instanceof Set)

const copyOf = (value: object): object =>
  Array.isArray(value) ? Object.assign([], { length: value.length }, value) : { ...value }

const noValue = (): MillraceError =>
  new MillraceError('MR_NOT_AWAITED', 'a stream has no value to wait for, but many', {
    hint: 'Loop over it with `for await`, or pass it to a task.',
  })
