import { isAbsolute } from 'node:path'
import type { Plan } from '../../stream/board/plan.ts'
import { NameIndex } from '../../stream/language/names.ts'
import { compilePattern } from '../../stream/language/pattern.ts'
import type { Pattern } from '../../stream/language/pattern.ts'
import type { NodeOfRun, Wanted } from './messages.ts'

/** Which nodes need a file that another node makes: those whose steps read it, or whose files are complete with it. */
export class Routes {
  readonly #wanted: NameIndex<number>
  readonly #known = new Map<string, readonly number[]>()
  readonly #readers: { pattern: Pattern; step: string; node: number }[] = []

  /** How many nodes there are. */
  readonly count: number

  constructor(plan: Plan, nodes: readonly NodeOfRun[]) {
    this.count = nodes.length
    const nodesOf = (name: string): number[] =>
      nodes.flatMap(({ steps }, i) => (steps.some(([step]) => step === name) ? [i] : []))
    const entries: [Pattern, number][] = []
    const want = (pattern: Pattern, steps: readonly string[]): void => {
      for (const step of new Set(steps)) {
        for (const node of nodesOf(step)) {
          entries.push([pattern, node])
          this.#readers.push({ pattern, step, node })
        }
      }
    }
    for (const { name, inputs } of plan.steps) {
      for (const input of inputs) if (!isAbsolute(input)) want(compilePattern(input), [name])
    }
    for (const { commit, producers, consumers } of plan.rules) {
      if (commit.on !== 'file') continue
      for (const { pattern } of commit.deps) want(pattern, [...producers, ...consumers])
    }
    this.#wanted = new NameIndex(entries)
  }

  /** What the relay of a node has to send at all. */
  wantedFrom(node: number): Wanted[] {
    const found = new Map<string, Wanted>()
    for (const { pattern, step, node: reader } of this.#readers) {
      if (reader === node) continue
      const { text, literal } = pattern
      found.set(`${step} ${text}`, { pattern: literal ?? text, hasWildcards: literal === undefined, step })
    }
    return [...found.values()]
  }

  /** A directory goes to all that read something in it. */
  of(path: string, isDirectory = false): readonly number[] {
    const known = this.#known.get(path)
    if (known) return known
    const found = isDirectory
      ? this.#wanted.touchingTree({ text: path, literal: path, tokens: [] })
      : this.#wanted.covering(path)
    this.#known.set(path, found)
    return found
  }
}
