import { HereDocument } from './here-document.ts'

/** Where in a shell text an interpolation stands; it decides how it has to be quoted. */
export type Place = 'plain' | 'single' | 'double' | 'arithmetic' | 'unsafe' | HereDocument

/**
 * Reads shell text piece by piece, as far as quoting goes: quotes, backslashes, comments, here-documents and $( ) inside
 * double quotes.
 */
export class ShellScanner {
  /** The innermost last. `paren` is a $( ) or ( ) whose inside is plain again. */
  readonly #inside: ('double' | 'paren')[] = []
  #place: Place = 'plain'
  #comment = false
  #wordStart = true
  /** Those that begin with the next line; the first one is being read if `isInDocument`. */
  readonly #documents: HereDocument[] = []
  #isInDocument = false
  #isLost = false
  /** How deep we are when $(( )) ends, in which << is no document. */
  #math = Infinity
  /** There was a << in there: if it is no $(( )) after all, that was a document. */
  #hasShift = false
  /** With what is put in next, `$` would mean something. */
  #endsInDollar = false
  /** In $'…', which knows backslashes. */
  #isAnsi = false
  /** Open ${ } inside double quotes. */
  #braces = 0
  /** The letters since a word began. */
  #word = ''

  get place(): Place {
    if (this.#isLost || this.#endsInDollar) return 'unsafe'
    const [document] = this.#documents
    if (this.#isInDocument && document) return document.isInCommand ? 'unsafe' : document
    if (this.#comment || this.#isAnsi) return 'unsafe'
    // Quotes do not help there: what looks like an element of an array is looked into.
    return this.#inside.length >= this.#math ? 'arithmetic' : this.#place
  }

  /** Something was put between two pieces: the next character does not begin a word. */
  interpolated(): void {
    this.#wordStart = false
    this.#endsInDollar = false
    if (this.#isInDocument) this.#documents[0]?.interpolated()
  }

  read(text: string): void {
    for (let i = 0; i < text.length; i++) {
      const char = text[i] as string
      const next = text[i + 1]
      this.#endsInDollar = false
      if (this.#isInDocument) {
        if (this.#documents[0]?.read(char, next)) this.#documents.shift()
        this.#isInDocument = this.#documents.length > 0
        continue
      }
      if (this.#comment) this.#comment = char !== '\n'
      if (this.#comment) continue
      if (this.#isAnsi) {
        i = this.#readAnsi(char, next, i)
        continue
      }
      if (char === '\n' && this.#place === 'plain') this.#readLineEnd()
      const wordStart = this.#wordStart
      this.#wordStart = this.#place === 'plain' && /[\s;|&()]/.test(char)
      this.#readWord(char)
      if (this.#place === 'single') {
        if (char === "'") this.#place = 'plain'
      } else if (char === '\\') i++
      else if (char === '`') this.#place = this.#place === 'unsafe' ? this.#outer() : 'unsafe'
      else if (this.#place === 'unsafe') continue
      else if (char === '$' && next === '(') {
        this.#inside.push(
          ...(this.#place === 'double' ? (['double', 'paren'] as const) : (['paren'] as const)),
        )
        this.#place = 'plain'
        this.#word = ''
        if (text[i + 2] === '(') this.#beginMath()
        i++
      } else if (char === '$' && next === undefined) this.#endsInDollar = true
      else if (char === '<' && next === '<' && this.#place === 'plain') i = this.#readHere(text, i)
      else if (char === '"') this.#readQuote()
      else if (this.#place === 'double') this.#readBrace(char, next)
      else if (char === '$' && next === "'") {
        this.#isAnsi = true
        i++
      } else this.#readPlain(char, next, wordStart)
    }
  }

  /** Shells that do not know $'…' take \' for its end. */
  #readAnsi(char: string, next: string | undefined, at: number): number {
    this.#isAnsi = char !== "'"
    if (char !== '\\') return at
    this.#isLost ||= next === "'"
    return at + 1
  }

  /** In a `case`, a bracket closes that was not opened. */
  #readWord(char: string): void {
    this.#isLost ||= this.#word === 'case' && this.#inside.length > 0 && /\s/.test(char)
    this.#word = this.#wordStart ? '' : (this.#word + char).slice(0, 5)
  }

  #readQuote(): void {
    // Which of the quotes in "${x:-"…"}" belong together is not the same in all shells.
    if (this.#place === 'double' && this.#braces > 0) this.#isLost = true
    this.#place = this.#place === 'double' ? 'plain' : 'double'
  }

  #readBrace(char: string, next: string | undefined): void {
    if (char === '$' && next === '{') this.#braces++
    else if (char === '}' && this.#braces > 0) this.#braces--
  }

  #readLineEnd(): void {
    this.#isInDocument = this.#documents.length > 0
    this.#isLost ||= this.#hasShift
  }

  #beginMath(): void {
    this.#math = Math.min(this.#math, this.#inside.length)
  }

  /** Returns the place of the last character that was read. */
  #readHere(text: string, at: number): number {
    if (this.#inside.length >= this.#math) {
      this.#hasShift = true
      return at + 1
    }
    if (text[at + 2] === '<') return at + 2
    const begun = HereDocument.begin(text, at)
    // Its end is not known, and so nothing that follows is.
    if (!begun) this.#isLost = true
    else this.#documents.push(begun.document)
    return begun ? begun.next - 1 : at + 1
  }

  #readPlain(char: string, next: string | undefined, wordStart: boolean): void {
    if (char === "'") this.#place = 'single'
    else if (char === '#' && wordStart) this.#comment = true
    // Old arithmetic, with << as in $(( )).
    else if (char === '$' && next === '[') this.#isLost = true
    else if (char === '(') {
      this.#inside.push('paren')
      if (next === '(') this.#beginMath()
    } else if (char === ')' && this.#inside.pop() === 'paren') {
      this.#closeMath(next)
      this.#place = this.#outer()
    }
  }

  #closeMath(next: string | undefined): void {
    // Two commands in brackets, not arithmetic.
    if (this.#hasShift && this.#inside.length === this.#math && next !== ')') this.#isLost = true
    if (this.#inside.length >= this.#math) return
    this.#math = Infinity
    this.#hasShift = false
  }

  #outer(): Place {
    if (this.#inside.at(-1) !== 'double') return 'plain'
    this.#inside.pop()
    return 'double'
  }
}

const SAFE = /^[\w@%+=:,./-]+$/

/** A word as one would type it in a POSIX shell. */
export function quoteWord(word: string): string {
  return SAFE.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

/** Null where it cannot be quoted. */
export function quoteFor(place: Place, word: string): string | null {
  if (place instanceof HereDocument) return place.quote(word)
  if (place === 'arithmetic') return /^-?[\w.]+$/.test(word) ? word : null
  if (place === 'single') return word.replaceAll("'", String.raw`'\''`)
  if (place === 'double') return word.replaceAll(/[\\"$`]/g, String.raw`\$&`)
  return quoteWord(word)
}
