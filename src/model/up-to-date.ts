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
