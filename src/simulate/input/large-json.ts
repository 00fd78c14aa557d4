import type { JsonNode, Place } from '../../source/json.ts'

/** Characters above which the place of each value takes more memory than there may be. */
export const LARGE = 64e6

/** Stands for a place that is not known. */
export const NOWHERE: Place = { line: 0, column: 0 }

/** The same as `parseJson` gives, made piece by piece when it is looked at, and without places. */
export function lazyNode(value: unknown): JsonNode {
  const at = NOWHERE
  if (typeof value === 'string') return { kind: 'string', at, value }
  if (typeof value === 'number') return { kind: 'number', at, value }
  if (typeof value === 'boolean') return { kind: 'boolean', at, value }
  if (value === null || typeof value !== 'object') return { kind: 'null', at }
  if (Array.isArray(value)) return new LazyArray(value)
  return new LazyObject(value)
}

class LazyArray {
  readonly kind = 'array'
  readonly at = NOWHERE
  readonly #values: readonly unknown[]

  constructor(values: readonly unknown[]) {
    this.#values = values
  }

  get items(): JsonNode[] {
    return this.#values.map(lazyNode)
  }
}

class LazyObject {
  readonly kind = 'object'
  readonly at = NOWHERE
  readonly #value: object

  constructor(value: object) {
    this.#value = value
  }

  get members(): { key: string; keyAt: Place; value: JsonNode }[] {
    return Object.entries(this.#value).map(([key, value]) => ({
      key,
      keyAt: NOWHERE,
      value: lazyNode(value),
    }))
  }
}
