import { MillraceError } from '../core/errors.ts'
import { ShellScanner, quoteFor, quoteWord } from './shell-text.ts'
import type { Place } from './shell-text.ts'

/** What can be put into `sh`: words, lists of words, and shell text made by `sh` itself. */
export type Word = string | number | bigint | ShellCommand | readonly Word[]

const BRAND = Symbol.for('millrace.flow.command')

/** Text for a shell, in which everything that was put in is quoted. */
export class ShellCommand {
  /** A workflow may have a copy of Millrace of its own, other than the one that runs it. */
  static [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && BRAND in value
  }

  readonly [BRAND] = true
  readonly text: string
  readonly #template: Template
  readonly #values: readonly Word[]

  /** @internal */
  constructor(text: string, template: Template, values: readonly Word[]) {
    this.text = text
    this.#template = template
    this.#values = values
  }

  /** The words of a command so simple that it needs no shell. */
  get words(): readonly string[] | null {
    return this.#template.isSimple ? wordsOf(this.#template.pieces, this.#values) : null
  }
}

/** @internal */
export interface Template {
  readonly pieces: readonly string[]
  /** How the interpolation after each piece is to be quoted. */
  readonly places: readonly Place[]
  /** The literal text is words and blanks only. */
  readonly isSimple: boolean
}

const templates = new WeakMap<TemplateStringsArray, Template>()

/**
 * A command for the shell. What is put in is quoted, so that no name of a file is read as anything else; a list
 * becomes several words. Backslashes reach the shell as they are written.
 *
 *     sh`sort -k ${column} ${files} | uniq > ${out}`
 */
export function sh(strings: TemplateStringsArray, ...values: readonly Word[]): ShellCommand {
  const template = templates.get(strings) ?? remember(strings)
  const { pieces, places } = template
  let text = pieces[0] as string
  for (let i = 0; i < values.length; i++) {
    text += insert(values[i], places[i] as Place) + (pieces[i + 1] as string)
  }
  return new ShellCommand(text.trim(), template, values)
}

const SIMPLE = /^[\w@%+=:,./\- \t]*$/

function remember(strings: TemplateStringsArray): Template {
  // Only these two escapes are the template's; all others are meant for the shell.
  const pieces = strings.raw.map(piece => piece.replaceAll(/\\(`|\$\{)/g, '$1'))
  const scanner = new ShellScanner()
  const places: Place[] = []
  for (const piece of pieces) {
    scanner.read(piece)
    places.push(scanner.place)
    scanner.interpolated()
  }
  const template = { pieces, places, isSimple: pieces.every(piece => SIMPLE.test(piece)) }
  templates.set(strings, template)
  return template
}

function insert(value: unknown, place: Place): string {
  if (place === 'unsafe')
    throw wrong(
      'stands inside backquotes, a comment or a command in a here-document, after a $ or a << of which it is not ' +
        'certain what it begins, where it cannot be quoted',
    )
  if (value instanceof ShellCommand) {
    if (place !== 'plain') throw wrong('is shell text inside quotes')
    return value.text
  }
  if (Array.isArray(value)) return value.map(one => insert(one, place)).join(' ')
  const quoted = quoteFor(place, wordOf(value))
  if (quoted === null) {
    throw wrong(
      place === 'arithmetic'
        ? 'stands in arithmetic, where only numbers and names can be put in'
        : 'has a line that would end the here-document',
    )
  }
  return quoted
}

function wordOf(value: unknown): string {
  if (typeof value === 'string') {
    if (value.includes('\0')) throw wrong('has a zero character')
    return value
  }
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  throw wrong(`is ${value === null ? 'null' : typeof value}, not a word`)
}

const wrong = (what: string): MillraceError => new MillraceError('MR_FLOW_SH', `a value in sh\`…\` ${what}`)

/** Commands of the shell itself, and words that begin something larger. */
const BUILTINS = new Set(
  (
    '. : [ [[ { } ! alias bg break builtin case cd command continue declare do done elif else esac eval exec ' +
    'exit export fc fg fi for function getopts hash history if in jobs kill let local logout mapfile popd ' +
    'pushd pwd read readarray readonly return select set shift shopt source suspend then time times trap ' +
    'type typeset ulimit umask unalias unset until wait while'
  ).split(' '),
)

/** The words, when no shell is needed to find them. */
function wordsOf(pieces: readonly string[], values: readonly unknown[]): readonly string[] | null {
  const words: string[] = []
  /** The word that is being put together; null between words. */
  let open: string | null = null
  for (let i = 0; i < pieces.length; i++) {
    for (const part of (pieces[i] as string).split(/([ \t]+)/)) {
      if (part === '') continue
      if (/^[ \t]/.test(part)) {
        if (open !== null) words.push(open)
        open = null
      } else open = (open ?? '') + part
    }
    if (i === values.length) break
    const value = values[i]
    if (value instanceof ShellCommand) return null
    if (!Array.isArray(value)) open = (open ?? '') + wordOf(value)
    else {
      const flat = (value as unknown[]).flat(Infinity)
      if (flat.some(one => one instanceof ShellCommand)) return null
      for (const [at, one] of flat.entries()) {
        if (at > 0 && open !== null) words.push(open)
        open = (at === 0 ? (open ?? '') : '') + wordOf(one)
      }
    }
  }
  if (open !== null) words.push(open)
  const [first = ''] = words
  return first === '' || first.includes('=') || first.startsWith('~') || BUILTINS.has(first) ? null : words
}

/** A program and its arguments, without a shell. */
export type Argv = readonly (string | number)[]

export const isCommand = (value: unknown): value is ShellCommand | Argv =>
  value instanceof ShellCommand ||
  (Array.isArray(value) &&
    value.length > 0 &&
    value.every(word => typeof word === 'string' || typeof word === 'number'))

/** As a person would type it. */
export const textOf = (command: ShellCommand | Argv): string =>
  command instanceof ShellCommand ? command.text : command.map(word => quoteWord(String(word))).join(' ')
