import { inspect } from 'node:util'

/** What the encoder has to know of a value, and the language does not readily tell. */

/** From this length on, listing all keys takes longer than asking for the named ones alone. */
export const PRINTED_ITEMS = 50

/** Shows nothing of an array but how many elements it has, and what has a name beside them. */
const NAMES_ONLY = { maxArrayLength: 0, depth: 0, customInspect: false, breakLength: Infinity, compact: true }

/**
 * Whether an array has properties beside its elements, such as the columns of a table. Nothing in the language tells
 * without making a text of each index, which takes longer than all else that is done with a long array.
 */
export function isNamed(array: unknown[]): boolean {
  const { length } = array
  if (length >= PRINTED_ITEMS && inspect(array, NAMES_ONLY) === `[ ... ${length} more items ]`) return false
  // Names come after all indices, and symbols after names.
  const last = Object.keys(array).at(-1)
  return last !== undefined && String(Number(last)) !== last
}

/** Up to this length, to look at each index takes less than a second. */
const LONG = 2 ** 25
const PROBES = 64

/** Whether a very long array is almost empty: then its keys are gone through, because its indices would take minutes. */
export function isSparse(array: unknown[]): boolean {
  if (array.length < LONG) return false
  const step = (array.length - 1) / (PROBES - 1)
  let there = 0
  for (let i = 0; i < PROBES; i++) if (Math.floor(i * step) in array) there++
  return there < PROBES / 2
}

/** Classes whose instances are more than their properties. */
export const BUILT_IN = [
  Map,
  Set,
  Promise,
  Array,
  Date,
  RegExp,
  Error,
  WeakMap,
  WeakSet,
  Number,
  String,
  Boolean,
]

/** Its memory is elsewhere, as after `postMessage` with a list of what to transfer. */
export function isDetached(buffer: ArrayBufferLike): boolean {
  if (buffer.byteLength > 0) return false
  try {
    return new Uint8Array(buffer).length > 0
  } catch {
    return true
  }
}

export const hasSymbols = (value: object): boolean => Object.getOwnPropertySymbols(value).length > 0

export const hasHidden = (value: object): boolean =>
  Object.getOwnPropertyNames(value).length > Object.keys(value).length

const privacy = new WeakMap<Function, boolean>()

/** Private fields cannot be seen from outside, only in the source; without them an instance is not whole. */
export function hasPrivateFields(constructor: Function): boolean {
  let answer = privacy.get(constructor)
  if (answer === undefined) {
    answer = false
    for (let at: unknown = constructor; typeof at === 'function' && at !== Function.prototype;) {
      if (/[\s;{}*.]#[\p{L}_$]/u.test(Function.prototype.toString.call(at))) answer = true
      at = Object.getPrototypeOf(at)
    }
    privacy.set(constructor, answer)
  }
  return answer
}
