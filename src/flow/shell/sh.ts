import { MillraceError } from '../../core/errors.ts'
import { isNumber, quoteFor, quoteWord } from './quote.ts'
import { ShellScanner } from './scanner.ts'
import type { Place } from './scanner.ts'

/** What can be put into `sh`: words, lists of words, and shell text made by `sh` itself. */
export type Word = string | number | bigint | ShellCommand | readonly Word[]

const BRAND = Symbol.for('millrace.flow.command')
const PARTS = Symbol.for('millrace.flow.parts')

/** Text for a shell, in which everything that was put in is quoted. */
export class ShellCommand {
  /** A workflow may have a copy of Millrace of its own, other than the one that runs it. */
  static [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && BRAND in value
  }

  readonly [BRAND] = true
  readonly text: string
  /** @internal */
  readonly [PARTS]: Parts
  readonly #isSimple: boolean

  /** @internal */
  constructor(text: string, parts: Parts, isSimple: boolean) {
    this.text = text
    this[PARTS] = parts
    this.#isSimple = isSimple
  }

  /** The words of a command so simple that it needs no shell. */
  get words(): readonly string[] | null {
    return this.#isSimple ? wordsOf(this[PARTS].pieces, this[PARTS].values) : null
  }
}

/** Literal text, and the values between its pieces. */
interface Parts {
  readonly pieces: readonly string[]
  readonly values: readonly unknown[]
}

interface Template {
  readonly pieces: readonly string[]
  readonly places: readonly Place[]
  /** The literal text is words and blanks only. */
  readonly isSimple: boolean
}

const templates = new WeakMap<TemplateStringsArray, Template>()

/**
 * A command for the shell. What is put in is quoted, so that no name of a file is read as anything else; a list
 * becomes several words. Backslashes reach the shell as they are written. Where the shell or a program would evaluate
 * a value in spite of quotes, only numbers can be put in.
 *
 *     sh`sort -k ${column} ${files} | uniq > ${out}`
 */
export function sh(strings: TemplateStringsArray, ...values: readonly Word[]): ShellCommand {
  const isNested = values.some(hasCommand)
  const template = isNested ? null : templates.get(strings)
  if (template) return compose(template, values)
  // Only these two escapes are the template's; all others are meant for the shell.
  const pieces = strings.raw.map(piece => piece.replaceAll(/\\(`|\$\{)/g, '$1'))
  if (isNested) {
    const parts = flatten({ pieces, values })
    return compose(templateOf(parts.pieces), parts.values)
  }
  const made = templateOf(pieces)
  templates.set(strings, made)
  return compose(made, values)
}

function compose({ pieces, places, isSimple }: Template, values: readonly unknown[]): ShellCommand {
  let text = pieces[0] as string
  for (let i = 0; i < values.length; i++) {
    text += insert(values[i], places[i] as Place) + (pieces[i + 1] as string)
  }
  return new ShellCommand(text.trim(), { pieces, values }, isSimple)
}

const SIMPLE = /^[\w@%+=:,./\- \t]*$/

function templateOf(pieces: readonly string[]): Template {
  const scanner = new ShellScanner()
  for (const piece of pieces.slice(0, -1)) scanner.read(piece)
  const places = scanner.finish(pieces.at(-1) as string)
  return { pieces, places, isSimple: pieces.every(piece => SIMPLE.test(piece)) }
}

const hasCommand = (value: unknown): boolean =>
  value instanceof ShellCommand || (Array.isArray(value) && value.some(hasCommand))

/** Commands that are put in become part of the text: what stands around them decides how their values are quoted. */
function flatten({ pieces, values }: Parts): Parts {
  const flat: { pieces: string[]; values: unknown[] } = { pieces: [''], values: [] }
  const addText = (text: string): void => {
    flat.pieces.push((flat.pieces.pop() as string) + text)
  }
  const addValue = (value: unknown): void => {
    flat.values.push(value)
    flat.pieces.push('')
  }
  const add = (value: unknown): void => {
    if (Array.isArray(value) && hasCommand(value)) {
      for (const [i, one] of value.entries()) {
        if (i > 0) addText(' ')
        add(one)
      }
    } else if (value instanceof ShellCommand) {
      if (!endsPlain(flat.pieces)) throw wrong('is shell text inside quotes')
      const parts = (value as Partial<ShellCommand>)[PARTS] ?? { pieces: [value.text], values: [] }
      for (const [i, piece] of trimmed(parts.pieces).entries()) {
        addText(piece)
        if (i < parts.values.length) addValue(parts.values[i])
      }
    } else addValue(value)
  }
  for (const [i, piece] of pieces.entries()) {
    addText(piece)
    if (i < values.length) add(values[i])
  }
  return flat
}

function endsPlain(pieces: readonly string[]): boolean {
  const scanner = new ShellScanner()
  for (const piece of pieces.slice(0, -1)) scanner.read(piece)
  return scanner.isPlainAfter(pieces.at(-1) as string)
}

const trimmed = (pieces: readonly string[]): readonly string[] =>
  pieces.map((piece, i) => {
    const start = i === 0 ? piece.trimStart() : piece
    return i === pieces.length - 1 ? start.trimEnd() : start
  })

function insert(value: unknown, place: Place): string {
  const { quoting, onlyNumber } = place
  if (quoting === null)
    throw wrong(
      'stands inside backquotes, a comment or a command in a here-document, after a $ or a << of which it is not ' +
        'certain what it begins, where it cannot be quoted',
    )
  if (Array.isArray(value)) return value.map(one => insert(one, place)).join(' ')
  const word = wordOf(value)
  if (!isNumber(word)) {
    if (onlyNumber !== null) throw wrong(`${onlyNumber}: only a number can be put in there`)
    const mistake = place.mistaken(word)
    if (mistake !== null) throw wrong(mistake)
  }
  const quoted = quoteFor(quoting, word)
  if (quoted === null) throw wrong('has a line that would end the here-document')
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
