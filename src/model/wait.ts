import type { Datum, Version } from '../core/data.ts'
import { MillraceError } from '../core/errors.ts'
import { Future } from './future.ts'
import type { Tracker } from './tracker.ts'
import { Stream } from './value-stream.ts'

/** `seen` is the version that the program's object has the value of, if it has one. */
type Fetch = (datum: Datum, seen?: Version | null) => Promise<unknown>

/** Waits for a value and for what is inside it, and brings objects up to date in place. */
export async function resolveInside(
  value: unknown,
  tracker: Tracker,
  fetch: Fetch,
  entered = new Set<object>(),
): Promise<unknown> {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Future) return resolveFuture(value, tracker, fetch)
  if (value instanceof Stream) throw noValue()
  tracker.rejectPart(value)
  const tracked = tracker.find(value)
  if (tracked) {
    if (tracked.datum.inPlace) await fetch(tracked.datum)
    else if (tracked.dirty) {
      const writes = tracker.writesOf(tracked.datum)
      const latest = await fetchAgain(value, tracked.datum, tracker, fetch)
      bringUpToDate(value, latest)
      tracker.adopt(value, tracked.datum, writes)
    }
    return value
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Array.prototype && prototype !== Object.prototype && prototype !== null) return value
  // An object that holds itself is waited for once; whoever entered it first does.
  if (entered.has(value)) return value
  entered.add(value)
  // What is frozen cannot be filled in.
  const holder = Object.isFrozen(value) ? copyOf(value) : value
  await resolveAll(holder as Record<string, unknown>, item =>
    item instanceof Future
      ? resolveFuture(item, tracker, fetch)
      : resolveInside(item, tracker, fetch, entered),
  )
  return holder
}

const copyOf = (value: object): object => (Array.isArray(value) ? [...(value as unknown[])] : { ...value })

/** All are waited for, then the first failure is thrown: no wait is left behind. There may be very many. */
function resolveAll(
  holder: Record<string, unknown>,
  resolve: (item: object) => Promise<unknown>,
): Promise<void> {
  const keys = Object.keys(holder).filter(key => typeof holder[key] === 'object' && holder[key] !== null)
  if (keys.length === 0) return Promise.resolve()
  return new Promise((done, reject) => {
    let left = keys.length
    let failedAt = Infinity
    let failure: unknown
    const settled = (): void => {
      if (--left > 0) return
      if (failedAt === Infinity) done()
      else reject(failure as Error)
    }
    keys.forEach((key, at) => {
      const item = holder[key] as object
      resolve(item).then(
        resolved => {
          if (resolved !== item) holder[key] = resolved
          settled()
        },
        (error: unknown) => {
          if (at < failedAt) [failedAt, failure] = [at, error]
          settled()
        },
      )
    })
  })
}

async function resolveFuture(future: Future<unknown>, tracker: Tracker, fetch: Fetch): Promise<unknown> {
  const { object, datum } = future
  if (object && !(tracker.find(object)?.dirty ?? false)) return object
  const writes = tracker.writesOf(datum)
  const latest = await (object ? fetchAgain(object, datum, tracker, fetch) : fetch(datum))
  if (typeof latest !== 'object' || latest === null) return latest
  if (future.object) {
    // Someone else waited meanwhile, or an earlier wait gave the program this object.
    if (tracker.find(future.object)?.dirty) bringUpToDate(future.object, latest)
  } else future.object = latest
  tracker.adopt(future.object, datum, writes)
  return future.object
}

/** What the program has of it becomes what it was before when the newer value fails. */
async function fetchAgain(object: object, datum: Datum, tracker: Tracker, fetch: Fetch): Promise<unknown> {
  try {
    return await fetch(datum, tracker.find(object)?.seen)
  } catch (error) {
    tracker.fellBack(object)
    throw error
  }
}

const noValue = (): MillraceError =>
  new MillraceError('MR_NOT_AWAITED', 'a stream has no value to wait for, but many', {
    hint: 'Loop over it with `for await`, or pass it to a task.',
  })

/** Makes an object equal to a newer one without replacing it or the objects inside it, where they still fit. */
export function bringUpToDate(target: object, latest: unknown): void {
  if (typeof latest === 'object' && latest !== null) merge(target, latest, new Done())
}

/** New objects and what stands for them; an old object stands for one new object only. */
class Done extends Map<object, object> {
  readonly used = new Set<object>()

  override set(latest: object, target: object): this {
    this.used.add(target)
    return super.set(latest, target)
  }
}

function merge(target: object, latest: object, done: Done): boolean {
  if (Object.getPrototypeOf(target) !== Object.getPrototypeOf(latest)) return false
  done.set(latest, target)
  if (ArrayBuffer.isView(target)) return setBytes(target, latest as ArrayBufferView)
  if (target instanceof ArrayBuffer || target instanceof SharedArrayBuffer) {
    if (target.byteLength !== (latest as ArrayBuffer).byteLength) return false
    new Uint8Array(target).set(new Uint8Array(latest as ArrayBuffer))
    return true
  }
  if (target instanceof Map) return setMap(target, latest as Map<unknown, unknown>, done)
  if (target instanceof Set) return setMembers(target, latest as Set<unknown>, done)
  if (target instanceof Date) {
    target.setTime((latest as Date).getTime())
    return true
  }
  if (target instanceof RegExp || target instanceof Error || Object.isFrozen(target)) return false
  return setProperties(target as Record<string, unknown>, latest as Record<string, unknown>, done)
}

function setBytes(target: ArrayBufferView, latest: ArrayBufferView): boolean {
  if (target.byteLength !== latest.byteLength) return false
  new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(
    new Uint8Array(latest.buffer, latest.byteOffset, latest.byteLength),
  )
  return true
}

function setMap(target: Map<unknown, unknown>, latest: Map<unknown, unknown>, done: Done): boolean {
  const before = new Map(target)
  const keys = stillThere(target, latest)
  target.clear()
  let i = 0
  for (const [newKey, item] of latest) {
    const key = merged(keys[i++], newKey, done)
    target.set(key, merged(before.get(key), item, done))
  }
  return true
}

function setMembers(target: Set<unknown>, latest: Set<unknown>, done: Done): boolean {
  const before = stillThere(target, latest)
  target.clear()
  let i = 0
  for (const item of latest) target.add(merged(before[i++], item, done))
  return true
}

/** Objects that are members or keys have their place only, and it is not known which of them are gone. */
const stillThere = (target: Map<unknown, unknown> | Set<unknown>, latest: { size: number }): unknown[] =>
  latest.size < target.size ? [] : [...target.keys()]

function setProperties(
  target: Record<string, unknown>,
  latest: Record<string, unknown>,
  done: Done,
): boolean {
  if (Array.isArray(target)) target.length = (latest as unknown as unknown[]).length
  for (const key of Object.keys(target)) if (!Object.hasOwn(latest, key)) Reflect.deleteProperty(target, key)
  for (const key of Object.keys(latest)) {
    const item = merged(Object.hasOwn(target, key) ? target[key] : undefined, latest[key], done)
    if (key === '__proto__') {
      Object.defineProperty(target, key, {
        value: item,
        writable: true,
        enumerable: true,
        configurable: true,
      })
      // What has a getter only is computed from the rest, and what is fixed stays.
    } else Reflect.set(target, key, item)
  }
  return true
}

/** The old object brought up to date where that is possible, else the new one. */
function merged(old: unknown, latest: unknown, done: Done): unknown {
  if (typeof latest !== 'object' || latest === null) return latest
  const known = done.get(latest)
  if (known) return known
  if (typeof old === 'object' && old !== null && !done.used.has(old) && merge(old, latest, done)) return old
  done.set(latest, latest)
  return latest
}
