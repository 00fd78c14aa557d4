import { hasSymbols, isNamed } from '../../model/capture/looks.ts'
import type { Graph } from '../../model/encoding/identity.ts'
import { isPrimitive } from '../../model/encoding/stored.ts'
import { TAG } from '../../model/encoding/tags.ts'

/**
 * Lists, maps and sets of primitive values, and of plain objects that hold nothing else. To copy and to compare them takes a fraction of the
 * time in which they are decoded and encoded.
 */

/** One as it came, of which a task has a copy: its elements, of a map keys and values by turns. */
export interface FlatBase {
  readonly tag: number
  /** Of this thread alone; there may be more by now. */
  readonly elements: readonly unknown[]
  /** How many there are of them in the value, a key and its value together. */
  readonly count: number
  /** Whether there are objects among them. */
  readonly hasObjects: boolean
}

type Flat = Record<string, unknown>

/** Elements of which one counts. */
export const widthOf = (tag: number): number => (tag === TAG.map ? 2 : 1)

/** The elements of a value, if it is flat; they are the task's. */
export function flatElements(value: unknown, { objects, origins }: Graph): unknown[] | null {
  if (origins) return null
  const elements = elementsOf(value)
  if (!elements) return null
  let count = 0
  for (const item of elements) {
    if (isPrimitive(item)) continue
    if (!isFlat(item as object)) return null
    count++
  }
  // Else one is in it twice.
  return count === objects.length - 1 ? elements : null
}

function elementsOf(value: unknown): unknown[] | null {
  if (Array.isArray(value)) {
    const list = value as unknown[]
    for (let i = 0; i < list.length; i++) if (isHole(list, i)) return null
    return list.slice()
  }
  if (value instanceof Map) return pairsOf(value)
  return value instanceof Set ? [...(value as Set<unknown>)] : null
}

function pairsOf(map: Map<unknown, unknown>): unknown[] {
  const elements: unknown[] = []
  for (const [key, item] of map) elements.push(key, item)
  return elements
}

const isHole = (list: readonly unknown[], i: number): boolean => list[i] === undefined && !(i in list)

function isFlat(object: object): boolean {
  if (Object.getPrototypeOf(object) !== Object.prototype) return false
  if (hasSymbols(object)) return false
  for (const key of Object.keys(object)) if (!isPrimitive((object as Flat)[key])) return false
  return true
}

const isObject = (item: unknown): item is Flat => typeof item === 'object' && item !== null

export const hasObjects = (elements: readonly unknown[]): boolean => elements.some(isObject)

/** With objects of its own. */
export const copiesOf = (elements: readonly unknown[]): unknown[] =>
  elements.map(item => (isObject(item) ? { ...item } : item))

/** The value that a task gets, and the objects in it. */
export function flatCopy(base: FlatBase): { value: object; graph: Graph } {
  const { tag, elements, count } = base
  const length = count * widthOf(tag)
  const some = length === elements.length ? elements : elements.slice(0, length)
  const own = base.hasObjects ? copiesOf(some) : tag === TAG.array ? some.slice() : some
  const value = tag === TAG.array ? (own as unknown[]) : tag === TAG.set ? new Set(own) : mapOf(own)
  const objects: object[] = [value]
  if (base.hasObjects) for (const item of own) if (isObject(item)) objects.push(item)
  return { value, graph: { objects, origins: null } }
}

function mapOf(elements: readonly unknown[]): Map<unknown, unknown> {
  const map = new Map<unknown, unknown>()
  for (let i = 0; i < elements.length; i += 2) map.set(elements[i], elements[i + 1])
  return map
}

/** What a task has added to a value, if it has done nothing else to it, and what it has added is flat. */
export function addedTo(value: unknown, base: FlatBase, graph: Graph): unknown[] | null {
  const added = behind(value, base, graph)
  if (!added || !hasObjects(added)) return added
  const known = new Set(graph.objects)
  for (const item of added) {
    if (!isObject(item)) continue
    if (!isFlat(item) || known.has(item)) return null
    known.add(item)
  }
  return added
}

/** What is behind the elements that were there, if these are as they were. */
function behind(value: unknown, { tag, elements, count }: FlatBase, { objects }: Graph): unknown[] | null {
  const prototype: unknown = Object.getPrototypeOf(value)
  const length = count * widthOf(tag)
  const added: unknown[] = []
  let at = 0
  let next = 1
  const take = (item: unknown): boolean => {
    if (at >= length) return added.push(item) > 0
    const before = elements[at++]
    if (!isObject(before)) return Object.is(item, before)
    return item === objects[next++] && isSame(item as Flat, before)
  }
  if (tag === TAG.array) {
    if (prototype !== Array.prototype || !Array.isArray(value)) return null
    const list = value as unknown[]
    for (let i = 0; i < list.length; i++) if (!take(list[i]) || isHole(list, i)) return null
    if (isNamed(list) || hasSymbols(list)) return null
  } else if (Reflect.ownKeys(value as object).length > 0) return null
  else if (tag === TAG.set && prototype === Set.prototype) {
    for (const item of value as Set<unknown>) if (!take(item)) return null
  } else if (tag === TAG.map && prototype === Map.prototype) {
    for (const [key, item] of value as Map<unknown, unknown>) if (!take(key) || !take(item)) return null
  } else return null
  return at < length ? null : added
}

function isSame(object: Flat, before: Flat): boolean {
  const keys = Object.keys(before)
  const own = Object.keys(object)
  if (own.length !== keys.length || Object.getPrototypeOf(object) !== Object.prototype) return false
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string
    if (own[i] !== key || !Object.is(object[key], before[key])) return false
  }
  return !hasSymbols(object)
}
