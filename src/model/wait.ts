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
  const tracked = tracker.find(value)
  if (tracked) {
    if (tracked.datum.inPlace) await fetch(tracked.datum)
    else if (tracked.dirty) {
      const writes = tracker.writesOf(tracked.datum)
      const latest = await fetch(tracked.datum, tracked.seen).catch((error: unknown) => {
        tracker.fellBack(value)
        throw error
      })
      bringUpToDate(value, latest)
      tracker.adopt(value, tracked.datum, writes)
    }
    return value
  }
  tracker.rejectPart(value)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Array.prototype && prototype !== Object.prototype && prototype !== null) return value
  // An object that holds itself is waited for once; whoever entered it first does.
  if (entered.has(value)) return value
  entered.add(value)
  const holder = value as Record<string, unknown>
  const waits: Promise<void>[] = []
  for (const [key, item] of Object.entries(holder)) {
    if (typeof item !== 'object' || item === null) continue
    waits.push(
      resolveInside(item, tracker, fetch, entered).then(resolved => {
        if (resolved !== item) holder[key] = resolved
      }),
    )
  }
  await settleAll(waits)
  return value
}

async function resolveFuture(future: Future<unknown>, tracker: Tracker, fetch: Fetch): Promise<unknown> {
  const { object, datum } = future
  if (object && !(tracker.find(object)?.dirty ?? false)) return object
  const writes = tracker.writesOf(datum)
  const latest = await fetch(datum, object && tracker.find(object)?.seen).catch((error: unknown) => {
    if (object) tracker.fellBack(object)
    throw error
  })
  if (typeof latest !== 'object' || latest === null) return latest
  if (future.object) {
    // Someone else waited meanwhile, or an earlier wait gave the program this object.
    if (tracker.find(future.object)?.dirty) bringUpToDate(future.object, latest)
  } else future.object = latest
  tracker.adopt(future.object, datum, writes)
  return future.object
}

const noValue = (): MillraceError =>
  new MillraceError('MR_NOT_AWAITED', 'a stream has no value to wait for, but many', {
    hint: 'Loop over it with `for await`, or pass it to a task.',
  })

/** All are waited for, then the first failure is thrown: no wait is left behind. */
async function settleAll(waits: Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(waits)
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}

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
  if (target instanceof Set) {
    target.clear()
    for (const item of latest as Set<unknown>) target.add(item)
    return true
  }
  if (target instanceof Date) {
    target.setTime((latest as Date).getTime())
    return true
  }
  if (target instanceof RegExp || target instanceof Error) return false
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
  target.clear()
  for (const [key, item] of latest) target.set(key, merged(before.get(key), item, done))
  return true
}

function setProperties(
  target: Record<string, unknown>,
  latest: Record<string, unknown>,
  done: Done,
): boolean {
  if (Array.isArray(target)) target.length = (latest as unknown as unknown[]).length
  for (const key of Object.keys(target)) if (!Object.hasOwn(latest, key)) delete target[key]
  for (const key of Object.keys(latest)) {
    const item = merged(Object.hasOwn(target, key) ? target[key] : undefined, latest[key], done)
    if (key === '__proto__') {
      Object.defineProperty(target, key, {
        value: item,
        writable: true,
        enumerable: true,
        configurable: true,
      })
    } else target[key] = item
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
