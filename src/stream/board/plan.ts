import type { Place } from '../../source/json.ts'
import type { Commit, Config, Fire, Name } from '../language/language.ts'
import { byPrecedence, NameIndex, Precedence, selfAndParents } from '../language/names.ts'
import { below, intersects, type Pattern } from '../language/pattern.ts'

export type Storage = 'memory' | 'fs'

export type Home =
  { policy: 'create' } | { policy: 'hashing' } | { policy: 'manual'; step: string; process: number }

/** One rule as it will be enforced, with everything that is known about its files. */
export interface PlanRule {
  pattern: Pattern
  directory: boolean
  commit: Commit
  fire: Fire
  producers: string[]
  consumers: string[]
  /** `some`: it depends on the file, because `permanent` names a part of the pattern. */
  permanent: 'yes' | 'no' | 'some'
  /** undefined: where the managed directory is. */
  storage: Storage | undefined
  home: Home
  /**
   * Written as a rule; what a directory's rule gives to its files; the default of a stream without a rule; and
   * what such a stream covers if it turns out to be a directory, which is not known before.
   */
  origin: 'rule' | 'directory' | 'default' | 'inside'
  order: number
  at: Place
  field: string
}

/** A checked configuration, ready to be enforced. */
export interface Plan {
  file: string
  name: string
  version: string
  steps: { name: string; inputs: string[]; outputs: string[] }[]
  /** In order of precedence: the first that matches a file is the one that applies. */
  rules: PlanRule[]
  permanent: Pattern[]
  exclude: Pattern[]
  memory: Pattern[]
  fs: Pattern[]
}

/** What is enforced, before producers and consumers are known. */
export interface EffectiveRule {
  pattern: Pattern
  directory: boolean
  commit: Commit
  fire: Fire
  origin: PlanRule['origin']
  order: number
  at: Place
  field: string
  name: Name
}

/** The rules as written, and for each directory the rule that its files get from it. */
export function effectiveRules(config: Config): EffectiveRule[] {
  const out: EffectiveRule[] = []
  const named = new Set(config.rules.map(rule => rule.name.pattern.text))
  for (const { name, directory, commit, filesCommit, fire, at, field } of config.rules) {
    const common = { fire, at, field, name }
    out.push({ ...common, pattern: name.pattern, directory, commit, origin: 'rule', order: out.length })
    if (!directory) continue
    const inside = below(name.pattern)
    if (named.has(inside.text)) continue
    const forFiles = filesCommit ?? commit
    out.push({
      ...common,
      pattern: inside,
      directory: false,
      commit: forFiles,
      origin: 'directory',
      order: out.length,
    })
  }
  return out
}

/** The plan of a configuration without errors. */
export function makePlan(config: Config): Plan {
  const writers = streamIndex(config, 'outputs')
  const readers = streamIndex(config, 'inputs')
  const permanent = new NameIndex(config.permanent.map(name => [name.pattern, name] as const))
  const storage = new NameIndex<Storage>([
    ...config.memory.map(name => [name.pattern, 'memory'] as const),
    ...config.fs.map(name => [name.pattern, 'fs'] as const),
  ])
  const homes = homeIndex(config)
  const seen = new Set<string>()
  const complete = (rule: Omit<EffectiveRule, 'name'>): PlanRule => {
    const { pattern, directory } = rule
    const among = <T>(index: NameIndex<T>): T[] =>
      directory ? index.touchingTree(pattern) : index.touching(pattern)
    return {
      ...rule,
      producers: among(writers),
      consumers: among(readers),
      permanent: permanence(permanent.touching(pattern), pattern),
      storage: storage.touching(pattern)[0],
      home: homes.touching(pattern)[0] ?? { policy: 'create' },
    }
  }
  const explicit = effectiveRules(config).filter(rule => {
    const first = !seen.has(rule.pattern.text)
    seen.add(rule.pattern.text)
    return first
  })
  // Outputs without a rule come after all rules: the default must never hide what the user wrote.
  const defaults = defaultRules(config, explicit, seen).map(complete)
  // A rule for what no step writes makes no step wait: such a file is a plain one.
  const effective = explicit.map(complete).filter(rule => rule.producers.length > 0)
  const written = ownNames(config, effective, complete)
  const rules = [
    ...written.toSorted(byPrecedence),
    ...ownNames(config, defaults, complete).toSorted(byPrecedence),
  ]
  return {
    file: config.file,
    name: config.name,
    version: config.version,
    steps: config.steps.map(({ name, inputs, outputs }) => ({
      name,
      inputs: texts(inputs),
      outputs: texts(outputs),
    })),
    rules,
    permanent: config.permanent.map(name => name.pattern),
    exclude: config.exclude.map(name => name.pattern),
    memory: config.memory.map(name => name.pattern),
    fs: config.fs.map(name => name.pattern),
  }
}

/**
 * A step that reads `r*` and writes `result` makes only that one name of the pattern: it gets a rule of its own, like the
 * pattern's, so that the step waits for the others.
 */
function ownNames(
  config: Config,
  rules: PlanRule[],
  complete: (rule: Omit<EffectiveRule, 'name'>) => PlanRule,
): PlanRule[] {
  const known = new Set(rules.map(rule => rule.pattern.text))
  const governing = new Precedence(rules)
  const more: PlanRule[] = []
  const outputs = new Map(config.steps.map(step => [step.name, step.outputs.map(name => name.pattern)]))
  const others = rules.map(rule => {
    const { pattern, directory, producers, consumers } = rule
    if (directory || pattern.literal !== undefined || producers.length < 2) return rule
    const own = producers.filter(
      step => consumers.includes(step) && writesPlainNames(outputs.get(step)!, pattern),
    )
    if (own.length === 0 || own.length === producers.length) return rule
    for (const name of own.flatMap(step => outputs.get(step)!.filter(one => intersects(pattern, one)))) {
      for (const one of [name, below(name)]) {
        if (known.has(one.text)) continue
        known.add(one.text)
        more.push(complete({ ...(governing.find(name.literal!) ?? rule), pattern: one, directory: false }))
      }
    }
    return { ...rule, producers: producers.filter(step => !own.includes(step)) }
  })
  return more.length === 0 ? others : [...others, ...more]
}

export const writesPlainNames = (outputs: Pattern[], pattern: Pattern): boolean =>
  outputs.every(one => one.literal !== undefined || !intersects(pattern, one)) &&
  outputs.every(one => !intersects(pattern, below(one)) || intersects(pattern, one))

function defaultRules(
  config: Config,
  explicit: EffectiveRule[],
  seen: Set<string>,
): Omit<EffectiveRule, 'name'>[] {
  const from = explicit.length
  const ruled = new Precedence(explicit)
  const outputs = config.steps.flatMap(step => step.outputs)
  const parents = new Set(outputs.flatMap(name => selfAndParents(name.pattern.text).slice(1)))
  const out: Omit<EffectiveRule, 'name'>[] = []
  const commit = { on: 'termination', count: undefined } as const
  for (const { pattern, at, field, slash } of outputs) {
    if (seen.has(pattern.text)) continue
    seen.add(pattern.text)
    // A plain name would come before the pattern of the rule that is about it.
    if (pattern.literal !== undefined && ruled.find(pattern.literal) !== undefined) continue
    const common = { commit, fire: 'update' as const, at, field }
    const directory = slash || parents.has(pattern.text)
    out.push({ ...common, pattern, directory, origin: 'default', order: from + out.length })
    // A name with a dot is hardly a directory, and thousands of them are common.
    const maybe = pattern.literal !== undefined && !/\.[^/]*$/.test(pattern.literal)
    if (!directory && !maybe) continue
    const inside = below(pattern)
    if (seen.has(inside.text)) continue
    out.push({ ...common, pattern: inside, directory: false, origin: 'inside', order: from + out.length })
  }
  return out
}

export const streamIndex = (config: Config, side: 'inputs' | 'outputs'): NameIndex<string> =>
  new NameIndex(config.steps.flatMap(step => step[side].map(name => [name.pattern, step.name] as const)))

function homeIndex(config: Config): NameIndex<Home> {
  const create: Home = { policy: 'create' }
  const hashing: Home = { policy: 'hashing' }
  return new NameIndex<Home>([
    ...config.manual.flatMap(({ files, step, process }) => {
      const home: Home = { policy: 'manual', step, process }
      return files.map(name => [name.pattern, home] as const)
    }),
    ...config.hashing.map(name => [name.pattern, hashing] as const),
    ...config.create.map(name => [name.pattern, create] as const),
  ])
}

/** Sure only when one entry has the very text, the very name, or a directory above: else it is per file. */
function permanence(entries: Name[], pattern: Pattern): PlanRule['permanent'] {
  if (entries.length === 0) return 'no'
  const whole = entries.some(
    ({ pattern: entry }) =>
      pattern.literal !== undefined ||
      entry.text === pattern.text ||
      entry.text === '*' ||
      isAbove(entry, pattern),
  )
  return whole ? 'yes' : 'some'
}

const isAbove = (entry: Pattern, pattern: Pattern): boolean =>
  pattern.text.startsWith(entry.text.endsWith('/*') ? entry.text.slice(0, -1) : `${entry.text}/`)

const texts = (names: Name[]): string[] => names.map(name => name.pattern.text)

/** Finds the rule that applies to a file, named relative to the managed directory. */
export function ruleFinder(plan: Plan): (name: string) => PlanRule | undefined {
  const isDefault = (rule: PlanRule): boolean => rule.origin === 'default' || rule.origin === 'inside'
  const tables = [plan.rules.filter(rule => !isDefault(rule)), plan.rules.filter(isDefault)].map(
    rules => new Precedence(rules),
  )
  return name => tables[0]!.find(name) ?? tables[1]!.find(name)
}
