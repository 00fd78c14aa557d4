import type { Rule } from './registry.ts'

/** With fewer rules than these it is quicker to try each. */
const INDEX_FROM = 16

/**
 * Rules with wildcards, found by what paths must begin or end with: a workflow may have thousands of them, and each file is
 * looked for in all that could make it.
 */
export class PatternIndex {
  readonly #rules: Rule[] = []
  readonly #byStart = new Map<string, Rule[]>()
  readonly #byEnd = new Map<string, Rule[]>()
  /** How long those texts are, each length once. */
  readonly #starts = new Set<number>()
  readonly #ends = new Set<number>()

  add(rule: Rule): void {
    this.#rules.push(rule)
    for (const { pattern } of rule.outputs) {
      const { start, end } = pattern
      if (start === '') put(this.#byEnd, this.#ends, end, rule)
      else put(this.#byStart, this.#starts, start, rule)
    }
  }

  /** Takes away rules with this number and later ones. */
  keepFirst(length: number): void {
    const kept = this.#rules.filter(({ number }) => number < length)
    for (const list of [this.#byStart, this.#byEnd]) list.clear()
    this.#rules.length = 0
    for (const rule of kept) this.add(rule)
  }

  /** Those that may make the file, in the order in which they were written. */
  candidates(path: string): readonly Rule[] {
    if (this.#rules.length < INDEX_FROM) return this.#rules
    const found = new Set<Rule>()
    const add = (rules: readonly Rule[] = []): void => rules.forEach(rule => found.add(rule))
    for (const length of this.#starts) add(this.#byStart.get(path.slice(0, length)))
    for (const length of this.#ends) add(this.#byEnd.get(path.slice(path.length - length)))
    return found.size < 2 ? [...found] : [...found].sort((a, b) => a.number - b.number)
  }
}

function put(map: Map<string, Rule[]>, lengths: Set<number>, text: string, rule: Rule): void {
  lengths.add(text.length)
  const rules = map.get(text)
  if (rules) rules.push(rule)
  else map.set(text, [rule])
}
