import { MillraceError } from '../../core/errors.ts'
import type { Graph } from '../encoding/identity.ts'
import { PRINTED_ITEMS, isNamed, isSparse } from './looks.ts'
import { bytesOf, codeOf, elementSize, makeView } from '../encoding/typed-arrays.ts'

/**
 * Gives the program's own objects the content that tasks have given them, in place, and returns what stands for each
 * object of the new value: the program's own where it had one (see encoding/identity.ts), else the new one.
 */
export function bringUpToDate(own: readonly object[], { objects, origins }: Graph): readonly object[] {
  const standIns = new StandIns()
  const views: ArrayBufferView[] = []
  objects.forEach((latest, i) => {
    const number = origins ? (origins[i] as number) : i
    const target = number < 0 ? undefined : own[number]
    if (target && fits(target, latest)) standIns.set(latest, target)
    else if (number === 0) throw unfit()
    else if (ArrayBuffer.isView(latest)) views.push(latest)
  })
  // New views of memory that the program has are views of that memory.
  for (const view of views) standIns.addView(view)
  for (const latest of objects) fill(standIns.of(latest), latest, standIns)
  return objects.map(latest => standIns.of(latest))
}

const unfit = (): MillraceError =>
  new MillraceError(
    'MR_DIRECTION',
    'the object cannot become what a task made of it: it is sealed, or the task gave it another class',
    { hint: 'Pass a copy, such as {...object}, and use the copy from there on.' },
  )

/** Whether the program's object can become what the new one is. */
function fits(target: object, latest: object): boolean {
  if (Object.getPrototypeOf(target) !== Object.getPrototypeOf(latest)) return false
  if (ArrayBuffer.isView(target) || isBuffer(target)) {
    return target.byteLength === (latest as ArrayBufferView).byteLength
  }
  // What is frozen or sealed cannot have changed in the program; a task had a copy that it could change.
  if (Object.isFrozen(target)) return hasSameValues(target, latest)
  return Object.isExtensible(target) || hasSameKeys(target, latest)
}

function hasSameKeys(target: object, latest: object): boolean {
  const keys = Object.keys(latest)
  return keys.length === Object.keys(target).length && keys.every(key => Object.hasOwn(target, key))
}

function hasSameValues(target: object, latest: object): boolean {
  const isPlain = (value: unknown): boolean => typeof value !== 'object' || value === null
  const [one, other] = [target, latest] as Record<string, unknown>[]
  const keys = Object.keys(one as object)
  return (
    keys.length === Object.keys(other as object).length &&
    keys.every(key => {
      const value = one?.[key]
      return isPlain(value) ? Object.is(value, other?.[key]) : !isPlain(other?.[key])
    })
  )
}

const isBuffer = (value: object): value is ArrayBufferLike =>
  value instanceof ArrayBuffer || value instanceof SharedArrayBuffer

/** What stands for the objects of the new value, and for their memory. */
class StandIns {
  readonly #objects = new Map<object, object>()
  readonly #memory = new Map<ArrayBufferLike, { buffer: ArrayBufferLike; shift: number }>()

  set(latest: object, target: object): void {
    this.#objects.set(latest, target)
    if (ArrayBuffer.isView(latest)) {
      const { buffer, byteOffset } = target as ArrayBufferView
      this.#memory.set(latest.buffer, { buffer, shift: byteOffset - latest.byteOffset })
    } else if (isBuffer(latest)) this.#memory.set(latest, { buffer: target as ArrayBufferLike, shift: 0 })
  }

  addView(latest: ArrayBufferView): void {
    const memory = this.#memory.get(latest.buffer)
    if (!memory) return
    const offset = latest.byteOffset + memory.shift
    if (offset < 0 || offset + latest.byteLength > memory.buffer.byteLength) return
    // The program's memory may begin where an array of this type cannot.
    if (offset % elementSize(latest) !== 0) return
    this.#objects.set(latest, makeView(codeOf(latest), memory.buffer, offset, latest.byteLength))
  }

  of<T>(latest: T): T {
    if (typeof latest !== 'object' || latest === null) return latest
    const found = this.#objects.get(latest)
    if (found) return found as T
    if (!isBuffer(latest)) return latest
    const memory = this.#memory.get(latest)
    const isSame = memory?.shift === 0 && memory.buffer.byteLength === latest.byteLength
    return isSame ? (memory.buffer as T) : latest
  }
}

function fill(target: object, latest: object, standIns: StandIns): void {
  if (ArrayBuffer.isView(target)) {
    if (target !== latest) bytesOf(target).set(bytesOf(latest as ArrayBufferView))
  } else if (isBuffer(target)) {
    if (target !== latest) new Uint8Array(target).set(new Uint8Array(latest as ArrayBuffer))
  } else if (target instanceof Map) setMap(target, latest as Map<unknown, unknown>, standIns)
  else if (target instanceof Set) setMembers(target, latest as Set<unknown>, standIns)
  else if (target instanceof Date) target.setTime((latest as Date).getTime())
  else if (target instanceof RegExp) target.lastIndex = (latest as RegExp).lastIndex
  else if (target instanceof Error) setError(target, latest as Error, standIns)
  else if (Object.isFrozen(target)) return
  else if (isLongList(target) && isLongList(latest)) setElements(target, latest, standIns)
  else setProperties(target as Properties, latest as Properties, standIns)
}

function setMap(target: Map<unknown, unknown>, latest: Map<unknown, unknown>, standIns: StandIns): void {
  const entries = [...latest]
  target.clear()
  for (const [key, item] of entries) target.set(standIns.of(key), standIns.of(item))
}

function setMembers(target: Set<unknown>, latest: Set<unknown>, standIns: StandIns): void {
  const members = [...latest]
  target.clear()
  for (const member of members) target.add(standIns.of(member))
}

/** Most of what is in an error is not enumerable. */
function setError(target: Error, latest: Error, standIns: StandIns): void {
  const [old, fresh] = [target, latest] as unknown as Properties[] as [Properties, Properties]
  const names = Object.getOwnPropertyNames(latest)
  for (const name of Object.getOwnPropertyNames(target)) {
    if (!names.includes(name)) Reflect.deleteProperty(target, name)
  }
  for (const name of names) {
    const value = standIns.of(fresh[name])
    if (Object.hasOwn(target, name) && Object.is(old[name], value)) continue
    const enumerable = Object.prototype.propertyIsEnumerable.call(latest, name)
    Reflect.defineProperty(target, name, { value, enumerable, writable: true, configurable: true })
  }
}

/** To list the keys of a long array takes longer than all else. */
const isLongList = (value: object): value is unknown[] =>
  Array.isArray(value) && value.length >= PRINTED_ITEMS && !isSparse(value) && !isNamed(value)

function setElements(target: unknown[], latest: unknown[], standIns: StandIns): void {
  const { length } = latest
  target.length = length
  for (let i = 0; i < length; i++) {
    const item = latest[i]
    if (item !== undefined || i in latest) target[i] = standIns.of(item)
    else Reflect.deleteProperty(target, i)
  }
}

type Properties = Record<string, unknown>

function setProperties(target: Properties, latest: Properties, standIns: StandIns): void {
  const keys = Object.keys(latest)
  if (target !== latest) {
    if (Array.isArray(target)) target.length = (latest as unknown as unknown[]).length
    removeOthers(target, latest, keys)
  }
  for (const key of keys) {
    const item = standIns.of(latest[key])
    if (target === latest && item === latest[key]) continue
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
}

/** Keys are in the order of the new value: those that are out of order are removed, to be set again. */
function removeOthers(target: Properties, latest: Properties, keys: readonly string[]): void {
  let next = 0
  for (const key of Object.keys(target)) {
    if (key === keys[next]) next++
    else if (!Object.hasOwn(latest, key) || !isIndex(key)) Reflect.deleteProperty(target, key)
  }
}

/** Indices come first in any case, in their own order. */
const isIndex = (key: string): boolean => String(Number(key) >>> 0) === key
