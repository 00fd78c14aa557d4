import { below, intersects, matches, type Pattern } from './pattern.ts'

class Entry<T> {
  readonly pattern: Pattern
  readonly value: T
  readonly order: number
  private lower: Pattern | undefined

  constructor(pattern: Pattern, value: T, order: number) {
    this.pattern = pattern
    this.value = value
    this.order = order
  }

  /** What lies below; rarely asked of plain names, so made when it is. */
  get inside(): Pattern {
    return (this.lower ??= below(this.pattern))
  }
}

/**
 * Names of a list (a stream, `permanent`, …), to be asked which of them speak of a file. A name covers the
 * file itself and, when it is a directory, all that lies below. Plain names are found through a map, because
 * configurations that a program wrote list thousands of them.
 */
export class NameIndex<T> {
  private readonly all: Entry<T>[] = []
  private readonly plain = new Map<string, Entry<T>[]>()
  /** Plain names by the directories that they lie in. */
  private readonly under = new Map<string, Entry<T>[]>()
  private readonly wild: Entry<T>[] = []

  constructor(entries: Iterable<readonly [Pattern, T]>) {
    for (const [pattern, value] of entries) {
      const entry = new Entry(pattern, value, this.all.length)
      this.all.push(entry)
      if (pattern.literal === undefined) this.wild.push(entry)
      else {
        addTo(this.plain, pattern.literal, entry)
        for (const parent of selfAndParents(pattern.literal).slice(1)) addTo(this.under, parent, entry)
      }
    }
  }

  /** The values of all entries that cover this very file. */
  covering(name: string): T[] {
    const found = this.wild.filter(entry => matches(entry.pattern, name) || matches(entry.inside, name))
    for (const path of selfAndParents(name)) found.push(...(this.plain.get(path) ?? []))
    return ordered(found)
  }

  /** The values of all entries that cover at least one file that the pattern matches. */
  touching(pattern: Pattern): T[] {
    if (pattern.literal !== undefined) return this.covering(pattern.literal)
    return ordered(
      this.all.filter(entry => intersects(pattern, entry.pattern) || intersects(pattern, entry.inside)),
    )
  }

  /** Like `touching`, for a directory: entries for it, for what is below it, or for what it lies in. */
  touchingTree(pattern: Pattern): T[] {
    const inside = below(pattern)
    const meets = (entry: Entry<T>): boolean =>
      intersects(pattern, entry.pattern) ||
      intersects(pattern, entry.inside) ||
      intersects(inside, entry.pattern)
    if (pattern.literal === undefined) return ordered(this.all.filter(meets))
    const found = this.wild.filter(meets)
    for (const path of selfAndParents(pattern.literal)) found.push(...(this.plain.get(path) ?? []))
    found.push(...(this.under.get(pattern.literal) ?? []))
    return ordered(found)
  }
}

function addTo<V>(map: Map<string, V[]>, key: string, value: V): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}

/** `a/b/c`, `a/b`, `a` */
export function selfAndParents(name: string): string[] {
  const out = [name]
  for (let at = name.lastIndexOf('/'); at > 0; at = name.lastIndexOf('/', at - 1)) out.push(name.slice(0, at))
  return out
}

function ordered<T>(entries: Entry<T>[]): T[] {
  return [...new Set(entries.toSorted((a, b) => a.order - b.order).map(entry => entry.value))]
}

/**
 * Precedence among patterns that match one file: the name itself first, then the longest text, then the one
 * that stands first in the file. `order` says where it stands.
 */
export function byPrecedence(
  a: { pattern: Pattern; order: number },
  b: { pattern: Pattern; order: number },
): number {
  const exact = Number(b.pattern.literal !== undefined) - Number(a.pattern.literal !== undefined)
  return exact || b.pattern.text.length - a.pattern.text.length || a.order - b.order
}

/** Answers which of several patterns applies to a file, by the precedence above. */
export class Precedence<T extends { pattern: Pattern; order: number }> {
  private readonly exact = new Map<string, T>()
  private readonly wild: T[]

  constructor(items: Iterable<T>) {
    const sorted = [...items].toSorted(byPrecedence)
    this.wild = sorted.filter(item => item.pattern.literal === undefined)
    for (const item of sorted) {
      const literal = item.pattern.literal
      if (literal !== undefined && !this.exact.has(literal)) this.exact.set(literal, item)
    }
  }

  find(name: string): T | undefined {
    return this.exact.get(name) ?? this.wild.find(item => matches(item.pattern, name))
  }

  /** All that could apply to some file of a pattern. */
  possible(pattern: Pattern): T[] {
    if (pattern.literal !== undefined) {
      const found = this.find(pattern.literal)
      return found === undefined ? [] : [found]
    }
    const exact = [...this.exact.values()].filter(item => matches(pattern, item.pattern.literal!))
    return [...exact, ...this.wild.filter(item => intersects(pattern, item.pattern))]
  }
}
