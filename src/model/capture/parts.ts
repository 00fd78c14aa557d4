import { isSparse } from './looks.ts'

/** What is inside the objects that a program makes of others: arrays, plain objects, maps and sets. */

const PLAIN: readonly unknown[] = [Array.prototype, Object.prototype, Map.prototype, Set.prototype, null]

const LISTS: readonly unknown[] = [Array.prototype, Object.prototype, null]

/** An array or a plain object. */
export const isList = (value: object): boolean => LISTS.includes(Object.getPrototypeOf(value))

export const isContainer = (value: object): boolean => PLAIN.includes(Object.getPrototypeOf(value))

/** Whether one of the things directly inside a container is as asked for. */
function some(value: object, is: (item: unknown) => boolean): boolean {
  if (Array.isArray(value) && !isSparse(value)) {
    for (const item of value as unknown[]) if (is(item)) return true
  } else if (value instanceof Map) {
    for (const [key, item] of value as Map<unknown, unknown>) if (is(key) || is(item)) return true
  } else if (value instanceof Set) {
    for (const item of value) if (is(item)) return true
  } else for (const item of Object.values(value)) if (is(item)) return true
  return false
}

export interface Search {
  /** Whether to look inside; an object that it does not enter may still be what is wanted. */
  enters(item: object): boolean
  isWanted(item: object): boolean
  /** Only what is not entered is looked at; what is no object, and not nothing, is wanted. */
  leavesOnly?: boolean
}

/** Whether there is something that is wanted inside an object, at any depth. */
export function holds(value: object, search: Search, entered: Set<object> | null = null): boolean {
  if (!search.enters(value)) return false
  const { leavesOnly = false } = search
  let seen = entered
  return some(value, item => {
    if (typeof item !== 'object' || item === null) return leavesOnly && item !== null && item !== undefined
    if (!search.enters(item)) return search.isWanted(item)
    if (!leavesOnly && search.isWanted(item)) return true
    // Objects may hold themselves; a set is needed only where there is depth.
    seen ??= new Set([value])
    if (seen.has(item)) return false
    seen.add(item)
    return holds(item, search, seen)
  })
}

/** Whether an object is inside two of the roots in a value, or inside one and elsewhere in the value. */
export function shares(value: object, enters: Search['enters'], isRoot: (item: object) => boolean): boolean {
  const rootOf = new Map([[value, value]])
  const left = [value]
  for (let next = left.pop(); next; next = left.pop()) {
    const from = rootOf.get(next) as object
    const isInTwo = some(next, item => {
      if (!isObject(item)) return false
      const root = from === value && isRoot(item) ? item : from
      const known = rootOf.get(item)
      if (known) return known !== root
      rootOf.set(item, root)
      if (enters(item)) left.push(item)
      return false
    })
    if (isInTwo) return true
  }
  return false
}

/** An object that may hold others, and what is to be in the place of some of them. */
export class Holder {
  readonly #object: object
  readonly #keys: unknown[] = []
  /** The objects in it, keys of maps among them. */
  readonly items: object[] = []
  readonly #values = new Map<object, unknown>()

  constructor(object: object) {
    this.#object = object
    if (object instanceof Map || object instanceof Set) {
      some(object, item => {
        if (isObject(item)) this.items.push(item)
        return false
      })
      return
    }
    const keys = Array.isArray(object) && !isSparse(object) ? object.keys() : Object.keys(object)
    for (const key of keys) {
      const item = (object as Record<string | number, unknown>)[key]
      if (!isObject(item)) continue
      this.#keys.push(key)
      this.items.push(item)
    }
  }

  put(item: object, value: unknown): void {
    if (value !== item) this.#values.set(item, value)
  }

  /** May run code of the user: properties can have setters. */
  fillIn(): void {
    if (this.#values.size === 0) return
    const object = this.#object
    const valueOf = (item: unknown): unknown =>
      this.#values.has(item as object) ? this.#values.get(item as object) : item
    if (object instanceof Map) {
      const entries = [...object].map(([key, item]) => [valueOf(key), valueOf(item)] as const)
      object.clear()
      for (const [key, item] of entries) object.set(key, item)
    } else if (object instanceof Set) {
      const members = [...object].map(valueOf)
      object.clear()
      for (const member of members) object.add(member)
    } else {
      this.items.forEach((item, at) => {
        const key = this.#keys[at] as string
        if (this.#values.has(item)) (object as Record<string, unknown>)[key] = this.#values.get(item)
      })
    }
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
