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

const copyOf = (item: unknown): unknown => (isPrimitive(item) ? item : { ...(item as Flat) })

export const copiesOf = (elements: readonly unknown[]): unknown[] => elements.map(copyOf)

/** The value that a task gets, and the objects in it. */
export function flatCopy({ tag, elements, count }: FlatBase): { value: object; graph: Graph } {
  const length = count * widthOf(tag)
  const own: unknown[] = length === elements.length ? copiesOf(elements) : copiesOf(elements.slice(0, length))
  const value = tag === TAG.array ? own : tag === TAG.set ? new Set(own) : mapOf(own)
  const objects: object[] = [value]
  for (const item of own) if (!isPrimitive(item)) objects.push(item as object)
  return { value, graph: { objects, origins: null } }
}

function mapOf(elements: readonly unknown[]): Map<unknown, unknown> {
  const map = new Map<unknown, unknown>()
  for (let i = 0; i < elements.length; i += 2) map.set(elements[i], elements[i + 1])
  return map
}

/** What a task has added to a value, if it has done nothing else to it, and what it has added is flat. */
export function addedTo(
  value: unknown,
  { tag, elements, count }: FlatBase,
  { objects }: Graph,
): unknown[] | null {
  const now = currentElements(value, tag)
  const length = count * widthOf(tag)
  if (!now || now.length < length) return null
  let next = 1
  for (let i = 0; i < length; i++) {
    const [item, before] = [now[i], elements[i]]
    if (isPrimitive(before)) {
      if (item === before && item !== 0 && item !== undefined) continue
      if (!Object.is(item, before) || (tag === TAG.array && isHole(now, i))) return null
    } else if (item !== objects[next++] || !isSame(item as Flat, before as Flat)) return null
  }
  const added = now.slice(length)
  let known: Set<object> | null = null
  for (let i = 0; i < added.length; i++) {
    const item = added[i]
    if (isPrimitive(item)) {
      if (tag === TAG.array && isHole(now, length + i)) return null
    } else {
      known ??= new Set(objects)
      if (!isFlat(item as object) || known.has(item as object)) return null
      known.add(item as object)
    }
  }
  return added
}

/** Null if there is something else beside its elements. */
function currentElements(value: unknown, tag: number): readonly unknown[] | null {
  if (tag === TAG.array) {
    const isList = Array.isArray(value) && Object.getPrototypeOf(value) === Array.prototype
    return isList && !isNamed(value as unknown[]) && !hasSymbols(value as object)
      ? (value as unknown[])
      : null
  }
  const prototype: unknown = tag === TAG.map ? Map.prototype : Set.prototype
  if (Object.getPrototypeOf(value) !== prototype || Reflect.ownKeys(value as object).length > 0) return null
  return tag === TAG.map ? pairsOf(value as Map<unknown, unknown>) : [...(value as Set<unknown>)]
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
