import { MillraceError } from '../core/errors.ts'
import type { FileTable } from './file-table.ts'
import { readInputs } from './language.ts'
import type { Wildcards } from './pattern.ts'
import type { RecordTable } from './record-table.ts'
import type { Registry, Rule, RuleFile } from './registry.ts'
import type { Shape } from './shape.ts'
import { NO_FILE, Work, workflowPath } from './work.ts'

/** How deep rules may follow from each other before it is taken for a pattern that makes itself for ever. */
const DEEPEST = 100

/** Stands for all tasks that are up to date and have been forgotten. */
const FRESH = new Work(null as never, {}, [], [], null as never)
FRESH.state = 'fresh'

/** Finds the rule for each file, and makes one task of it however many files it makes. */
export class Makers {
  readonly #registry: Registry
  readonly #files: FileTable
  readonly #records: RecordTable
  /** By file; null for files that no rule makes. */
  readonly #makers: (Work | null | undefined)[] = []
  /** What was found not to be made may be made by rules that have come since. */
  #generation = 0
  #hasDirectories = false
  readonly #isLean: boolean

  /** `isLean`: tasks that are up to date may be forgotten. */
  constructor(registry: Registry, files: FileTable, records: RecordTable, isLean = false) {
    this.#isLean = isLean
    this.#registry = registry
    this.#files = files
    this.#records = records
  }

  /** The task that makes the file; null when it is a source, or does not exist at all. */
  of(file: number): Work | null {
    if (this.#generation !== this.#registry.generation) this.#rulesAdded()
    // Without holes: a list with holes is looked up much more slowly.
    while (this.#makers.length <= file) this.#makers.push(undefined)
    const known = this.#makers[file]
    if (known !== undefined) return known
    const path = this.#files.path(file)
    const found = this.#find(path, file) ?? (this.#hasDirectories ? this.#directoryAbove(path) : null)
    this.#makers[file] = found
    if (found) {
      for (const output of found.outputs) {
        while (this.#makers.length <= output) this.#makers.push(undefined)
        this.#makers[output] = found
      }
    }
    return found
  }

  /** It is up to date, and nobody will ask for more: of a hundred thousand tasks that is all one has to remember. */
  release(work: Work): void {
    const { rule } = work
    if (!this.#isLean || rule.hasTemps || rule.hasFolders) return
    const [first = 0] = work.outputs
    // Rules of one output are the many.
    if (work.outputs.length === 1) this.#makers[first] = FRESH
  }

  *works(): Generator<Work> {
    const seen = new Set<Work>([FRESH])
    for (const work of this.#makers) {
      if (!work || seen.has(work)) continue
      seen.add(work)
      yield work
    }
  }

  #rulesAdded(): void {
    this.#generation = this.#registry.generation
    for (let file = 0; file < this.#makers.length; file++) {
      if (this.#makers[file] === null) this.#makers[file] = undefined
    }
    this.#hasDirectories = this.#registry.rules.some(rule => rule.hasFolders)
  }

  /** `file` is the number of the path. */
  #find(path: string, file: number): Work | null {
    const concrete = this.#registry.concrete.get(path)
    if (concrete) return this.#work(concrete, {}, file)
    let first: Work | null = null
    let possible: Work | null = null
    for (const rule of this.#registry.patterns.candidates(path)) {
      const wildcards = matchOf(rule, path)
      if (!wildcards) continue
      const work = this.#work(rule, wildcards, file)
      first ??= work
      if (!this.#isPossible(work, 0)) continue
      if (possible) throw ambiguous(path, [possible, work])
      possible = work
    }
    // If none is possible, the first leads to the error that says what is missing.
    return possible ?? (first && this.#files.exists(file) ? null : first)
  }

  /** A pattern rule is meant only where its inputs exist or can be made. */
  #isPossible({ inputs }: Work, depth: number): boolean {
    for (const input of inputs) if (input !== NO_FILE && !this.#canBeThere(input, depth)) return false
    return true
  }

  #canBeThere(file: number, depth: number): boolean {
    if (this.#makers[file] || this.#registry.concrete.has(this.#files.path(file))) return true
    if (this.#files.exists(file)) return true
    if (depth > DEEPEST) return false
    const path = this.#files.path(file)
    for (const rule of this.#registry.patterns.candidates(path)) {
      const wildcards = matchOf(rule, path)
      if (wildcards && this.#isPossible(this.#work(rule, wildcards, file), depth + 1)) return true
    }
    return this.#hasDirectories && this.#directoryAbove(path) !== null
  }

  /** A file inside a directory that a rule makes. */
  #directoryAbove(path: string): Work | null {
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at)
      const id = this.#files.id(folder)
      const work = this.#find(folder, id)
      const isMade = work?.outputs.some(
        (output, i) => this.#files.path(output) === folder && work.rule.outputs[i]?.marks.directory,
      )
      if (work && isMade) return this.of(id)
    }
    return null
  }

  /** `asked`: the output for which it was found. */
  #work(rule: Rule, wildcards: Wildcards, asked: number): Work {
    const outputs =
      rule.outputs.length === 1
        ? [asked]
        : rule.outputs.map(({ pattern }) => this.#id(pattern.fill(wildcards), asked))
    const [first = 0] = outputs
    const known = this.#makers[first]
    if (known && known.rule === rule) return known
    const { files, shape } = this.#inputs(rule, wildcards)
    const inputs: number[] = []
    for (let i = 0; i < files.length; i++) {
      const { pattern, marks } = files[i] as RuleFile
      // It most often reads what it read the last time.
      const file = this.#id(pattern.fill(wildcards), this.#records.inputOf(first, i))
      inputs.push(marks.optional && !this.#canBeThere(file, 0) ? NO_FILE : file)
    }
    return new Work(rule, wildcards, outputs, inputs, shape)
  }

  #id(path: string, guess: number): number {
    return this.#files.isAt(guess, path) ? guess : this.#files.id(workflowPath(path))
  }

  #inputs(rule: Rule, wildcards: Wildcards): { files: readonly RuleFile[]; shape: Shape } {
    if (typeof rule.inputs !== 'function') return rule.inputs
    const given: unknown = (rule.inputs as (given: Wildcards) => unknown)(wildcards)
    return readInputs(rule.name, rule.outputs[0]?.pattern.names ?? [], given)
  }
}

function matchOf({ outputs }: Rule, path: string): Wildcards | null {
  for (const { pattern } of outputs) {
    const wildcards = pattern.match(path)
    if (wildcards) return wildcards
  }
  return null
}

function ambiguous(path: string, works: readonly Work[]): MillraceError {
  const rules = works.map(({ rule }) => `${rule.name} (${rule.site})`)
  return new MillraceError(
    'MR_FLOW_AMBIGUOUS',
    `${rules.length} rules can make ${path}: ${rules.join(' and ')}`,
  )
}
