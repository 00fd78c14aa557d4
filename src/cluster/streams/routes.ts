import { isAbsolute } from 'node:path'
import { hashText } from '../../general/hash.ts'
import type { Home, Plan } from '../../stream/board/plan.ts'
import { NameIndex } from '../../stream/language/names.ts'
import { compilePattern } from '../../stream/language/pattern.ts'
import type { Pattern } from '../../stream/language/pattern.ts'
import type { NodeOfRun, Wanted } from './messages.ts'

/** Which nodes need a file that another node makes: its home, those whose steps read it, or whose files are complete with it. */
export class Routes {
  /** How many nodes there are. */
  readonly count: number
  readonly #wanted: NameIndex<number>
  readonly #homes: NameIndex<Home>
  readonly #known = new Map<string, readonly number[]>()
  readonly #readers: { pattern: Pattern; step: string; node: number }[] = []
  readonly #nodes: readonly NodeOfRun[]

  constructor(plan: Plan, nodes: readonly NodeOfRun[]) {
    this.count = nodes.length
    this.#nodes = nodes
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
    const placed = plan.rules.filter(({ home }) => home.policy !== 'create')
    this.#homes = new NameIndex(placed.map(({ pattern, home }) => [pattern, home]))
    for (const { pattern, home } of placed) {
      const step = home.policy === 'manual' ? home.step : (plan.steps[0]?.name ?? '')
      // Where the home of a file is depends on its name: all nodes have to send it, should it not be theirs.
      this.#readers.push({ pattern, step, node: home.policy === 'manual' ? this.#nodeOf(home) : -1 })
    }
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

  /** The home of a file first: it gets the bytes from the node that makes them, the others from there. A directory goes to all that read something in it. */
  of(path: string, isDirectory = false): readonly number[] {
    const known = this.#known.get(path)
    if (known) return known
    const readers = isDirectory
      ? this.#wanted.touchingTree({ text: path, literal: path, tokens: [] })
      : this.#wanted.covering(path)
    const home = isDirectory ? undefined : this.homeOf(path)
    const found = home === undefined ? readers : [home, ...readers.filter(node => node !== home)]
    this.#known.set(path, found)
    return found
  }

  /** The node on which a file has to be, whether or not it is read there; undefined: where it was created. */
  homeOf(path: string): number | undefined {
    const home = this.#homes.covering(path)[0]
    if (home === undefined || home.policy === 'create') return undefined
    return home.policy === 'hashing' ? hashText(path) % this.count : this.#nodeOf(home)
  }

  /** The node of an instance of a step; the first instance's when there are not as many. */
  #nodeOf({ step, process }: Home & { policy: 'manual' }): number {
    const has = (number: number): number =>
      this.#nodes.findIndex(({ steps }) =>
        steps.some(([name, count, first]) => name === step && number >= first && number < first + count),
      )
    const found = has(process)
    return Math.max(0, found < 0 ? has(0) : found)
  }
}
