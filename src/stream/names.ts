import { below, intersects, matches, type Pattern } from './pattern.ts'

interface Entry<T> {
  pattern: Pattern
  inside: Pattern
  value: T
  order: number
}

/**
 * Names of a list (a stream, `permanent`, …), to be asked which of them speak of a file. A name covers the
 * file itself and, when it is a directory, all that lies below. Plain names are found through a map, because
 * configurations that a program wrote list thousands of them.
 */
export class NameIndex<T> {
  private readonly all: Entry<T>[] = []
  private readonly plain = new Map<string, Entry<T>[]>()
  private readonly wild: Entry<T>[] = []

  constructor(entries: Iterable<readonly [Pattern, T]>) {
    for (const [pattern, value] of entries) {
      const entry = { pattern, inside: below(pattern), value, order: this.all.length }
      this.all.push(entry)
      if (pattern.literal === undefined) this.wild.push(entry)
      else {
        const same = this.plain.get(pattern.literal)
        if (same === undefined) this.plain.set(pattern.literal, [entry])
        else same.push(entry)
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
    const found = this.all.filter(
      entry =>
        intersects(pattern, entry.pattern) ||
        intersects(pattern, entry.inside) ||
        intersects(inside, entry.pattern),
    )
    return ordered(found)
  }
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
