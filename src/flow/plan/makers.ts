import { MillraceError } from '../../core/errors.ts'
import type { FileTable } from '../state/file-table.ts'
import { readInputs } from '../language/rule.ts'
import type { Wildcards } from '../language/pattern.ts'
import type { RecordTable } from '../state/record-table.ts'
import type { Registry, Rule, RuleFile } from '../language/registry.ts'
import type { Shape } from '../language/shape.ts'
import { NO_FILE, Work } from './work.ts'
import { workflowPath } from '../language/workflow-path.ts'

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
  /** By folder: who makes it, or one above it, as a whole. */
  readonly #above = new Map<string, Work | null>()
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
    const above = this.#hasDirectories ? this.#directoryAbove(path) : null
    const own = this.#find(path, file)
    if (own && above && own.rule !== above.rule) throw this.#overlap(path, above, own)
    const found = own ?? above
    this.#makers[file] = found
    if (found) {
      for (const output of found.outputs) {
        while (this.#makers.length <= output) this.#makers.push(undefined)
        if (output !== file && this.#makers[output] !== found) this.#expectNoOther(output, found)
        this.#makers[output] = found
      }
    }
    return found
  }

  /** Whichever was asked for last would win, in this run and in the next. */
  #expectNoOther(file: number, { rule }: Work): void {
    const path = this.#files.path(file)
    const concrete = this.#registry.concrete.get(path)
    const isOther = (one: Rule): boolean => {
      if (one === rule) return false
      const wildcards = matchOf(one, path)
      return wildcards !== null && this.#isPossible(this.#work(one, wildcards, file), 0)
    }
    const other = concrete ?? this.#registry.patterns.candidates(path).find(isOther)
    if (other && other !== rule) throw ambiguous(path, [other, rule])
  }

  #overlap(path: string, above: Work, { rule }: Work): MillraceError {
    const folder = above.outputs
      .map(output => this.#files.path(output))
      .find(one => path.startsWith(`${one}/`))
    return new MillraceError(
      'MR_FLOW_AMBIGUOUS',
      `${path} is made by rule ${rule.name} (${rule.site}), in the directory ${folder} that rule ` +
        `${above.rule.name} (${above.rule.site}) makes as a whole`,
      { hint: 'Write it to another folder, or let one rule make all that is in the directory.' },
    )
  }

  /** It is up to date, and nothing else of it is needed: of a hundred thousand tasks this is all that is kept. */
  release(work: Work): boolean {
    const { rule } = work
    if (!this.#isLean || rule.hasTemps || rule.hasFolders) return false
    const [first = 0] = work.outputs
    // Rules of one output are the many.
    if (work.outputs.length !== 1) return false
    this.#makers[first] = FRESH
    return true
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
    this.#above.clear()
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
      if (possible) throw ambiguous(path, [possible.rule, rule])
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
    const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    let known = this.#above.get(folder)
    if (known === undefined) this.#above.set(folder, (known = this.#findAbove(path)))
    return known
  }

  #findAbove(path: string): Work | null {
    const { concrete, patterns } = this.#registry
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at)
      const makes = ({ hasFolders, outputs }: Rule): boolean =>
        hasFolders && outputs.some(({ pattern, marks }) => marks.directory && pattern.match(folder))
      const rule = concrete.get(folder) ?? patterns.candidates(folder).find(makes)
      const work = rule && makes(rule) ? this.of(this.#files.id(folder)) : null
      if (work && makes(work.rule)) return work
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
  for (const one of outputs) {
    const wildcards = one.pattern.match(path)
    if (!wildcards) continue
    // What one output demands of a wildcard holds for it in all of them.
    const fits = ({ pattern }: RuleFile): boolean =>
      !pattern.isConstrained || pattern.match(pattern.fill(wildcards)) !== null
    if (outputs.length === 1 || outputs.every(fits)) return wildcards
  }
  return null
}

function ambiguous(path: string, rules: readonly Rule[]): MillraceError {
  const named = rules.map(({ name, site }) => `${name} (${site})`)
  return new MillraceError(
    'MR_FLOW_AMBIGUOUS',
    `${rules.length} rules can make ${path}: ${named.join(' and ')}`,
  )
}
