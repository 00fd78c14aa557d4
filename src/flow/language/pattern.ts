import { MillraceError } from '../../core/errors.ts'
import { constraintOf } from './constraints.ts'
import { workflowPath, workflowStart } from './workflow-path.ts'

export type Wildcards = Readonly<Record<string, string>>

interface Hole {
  readonly name: string
  readonly constraint: string | null
}

const NAME = /^[A-Za-z_]\w*$/

/**
 * A path with named wildcards: `proj/{name}.fits`. A wildcard matches one or more characters other than `/`, or
 * what its constraint says: `{year:[0-9]+}`, `{path:.+}`. The same name stands for the same text. `{{` and `}}`
 * are braces.
 */
export class Pattern {
  readonly text: string
  readonly names: readonly string[]
  /** Literal parts and holes in turn, beginning and ending with a literal. */
  readonly #literals: readonly string[]
  readonly #holes: readonly Hole[]
  #expression: RegExp | null = null

  constructor(text: string) {
    this.text = text
    if (text === '') throw wrong(text, 'is empty')
    const { literals, holes } = split(text)
    if (holes.length === 0) literals[0] = workflowPath(literals[0] as string)
    else {
      literals[0] = workflowStart(literals[0] as string)
      for (let i = 1; i < literals.length; i++) literals[i] = literals[i]?.replaceAll(/\/\/+/g, '/') ?? ''
      // A folder is meant with and without it.
      literals.push(literals.pop()?.replace(/\/$/, '') ?? '')
    }
    this.#literals = literals
    this.#holes = holes
    this.names = [...new Set(holes.map(hole => hole.name))]
  }

  get isConcrete(): boolean {
    return this.#holes.length === 0
  }

  get isConstrained(): boolean {
    return this.#holes.some(({ constraint }) => constraint !== null)
  }

  /** What all its paths begin with, and end with. */
  get start(): string {
    return this.#literals[0] as string
  }

  get end(): string {
    return this.#literals.at(-1) as string
  }

  /** The wildcards with which the pattern is this path, or null. */
  match(path: string): Wildcards | null {
    const literals = this.#literals
    // Most paths differ already at an end, and comparing those is cheaper than an expression.
    if (!path.startsWith(literals[0] as string) || !path.endsWith(literals.at(-1) as string)) return null
    if (this.#holes.length === 0) return path === literals[0] ? {} : null
    const [only] = this.#holes
    if (this.#holes.length === 1 && only && only.constraint === null) {
      const [before, after] = literals as [string, string]
      const value = path.slice(before.length, path.length - after.length)
      const fits = path.length > before.length + after.length && !value.includes('/')
      return fits ? { [only.name]: value } : null
    }
    const found = (this.#expression ??= this.#compile()).exec(path)
    if (!found) return null
    const wildcards: Record<string, string> = {}
    for (const name of this.names) wildcards[name] = found.groups?.[groupOf(name)] ?? ''
    return wildcards
  }

  fill(wildcards: Wildcards): string {
    let path = this.#literals[0] as string
    for (let i = 0; i < this.#holes.length; i++) {
      const { name } = this.#holes[i] as Hole
      const value = wildcards[name]
      if (value === undefined) {
        throw new MillraceError(
          'MR_FLOW_RULE',
          `'${this.text}' has a wildcard {${name}} that has no value here`,
        )
      }
      path += value + (this.#literals[i + 1] as string)
    }
    return path
  }

  #compile(): RegExp {
    const known = new Set<string>()
    let source = escape(this.#literals[0] as string)
    for (let i = 0; i < this.#holes.length; i++) {
      const { name, constraint } = this.#holes[i] as Hole
      const group = groupOf(name)
      source += known.has(name) ? `\\k<${group}>` : `(?<${group}>${constraint ?? '[^/]+'})`
      known.add(name)
      source += escape(this.#literals[i + 1] as string)
    }
    return new RegExp(`^${source}$`, 's')
  }
}

/** A constraint may have groups, also such with names, of its own. */
const groupOf = (name: string): string => `$${name}`

const escape = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)

function split(text: string): { literals: string[]; holes: Hole[] } {
  const literals = ['']
  const holes: Hole[] = []
  const add = (more: string): void => {
    literals[literals.length - 1] += more
  }
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string
    if ((char === '{' || char === '}') && text[i + 1] === char) {
      add(char)
      i++
    } else if (char === '{') {
      const end = closing(text, i)
      holes.push(readHole(text, text.slice(i + 1, end)))
      literals.push('')
      i = end
    } else if (char === '}') throw wrong(text, "has a '}' without its '{'")
    else add(char)
  }
  return { literals, holes }
}

/** Constraints may have braces of their own: {year:[0-9]{4}}. */
function closing(text: string, start: number): number {
  let depth = 0
  for (let i = start; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === '{') depth++
    else if (text[i] === '}' && --depth === 0) return i
  }
  throw wrong(text, "has a '{' without its '}'")
}

function readHole(text: string, inside: string): Hole {
  const colon = inside.indexOf(':')
  const name = colon < 0 ? inside : inside.slice(0, colon)
  const constraint = colon < 0 ? constraintOf(name) : inside.slice(colon + 1)
  if (!NAME.test(name)) throw wrong(text, `has a wildcard '{${inside}}' whose name is not a word`)
  if (constraint === null) return { name, constraint }
  try {
    void new RegExp(constraint)
    return { name, constraint }
  } catch (cause) {
    throw wrong(text, `has a wildcard {${name}} whose constraint is not a regular expression`, cause)
  }
}

function wrong(text: string, what: string, cause?: unknown): MillraceError {
  return new MillraceError('MR_FLOW_RULE', `the pattern '${text}' ${what}`, {
    hint: "Write {name}, or {name:expression}; for a brace itself write '{{' or '}}'.",
    ...(cause === undefined ? {} : { cause }),
  })
}
