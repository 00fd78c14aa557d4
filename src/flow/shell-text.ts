import { HereDocument } from './here-document.ts'

/** Where in a shell text an interpolation stands; it decides how it has to be quoted. */
export type Place = 'plain' | 'single' | 'double' | 'unsafe' | HereDocument

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

  get place(): Place {
    const [document] = this.#documents
    if (this.#isInDocument && document) return document.isInCommand ? 'unsafe' : document
    return this.#comment || this.#isLost ? 'unsafe' : this.#place
  }

  /** Something was put between two pieces: the next character does not begin a word. */
  interpolated(): void {
    this.#wordStart = false
    if (this.#isInDocument) this.#documents[0]?.interpolated()
  }

  read(text: string): void {
    for (let i = 0; i < text.length; i++) {
      const char = text[i] as string
      const next = text[i + 1]
      if (this.#isInDocument) {
        if (this.#documents[0]?.read(char, next)) this.#documents.shift()
        this.#isInDocument = this.#documents.length > 0
        continue
      }
      if (this.#comment) this.#comment = char !== '\n'
      if (this.#comment) continue
      if (char === '\n' && this.#place === 'plain') this.#isInDocument = this.#documents.length > 0
      const wordStart = this.#wordStart
      this.#wordStart = this.#place === 'plain' && /[\s;|&()]/.test(char)
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
        if (text[i + 2] === '(') this.#math = Math.min(this.#math, this.#inside.length)
        i++
      } else if (char === '<' && next === '<' && this.#place === 'plain') i = this.#readHere(text, i)
      else if (char === '"') this.#place = this.#place === 'double' ? 'plain' : 'double'
      else if (this.#place === 'plain') this.#readPlain(char, wordStart)
    }
  }

  /** Returns the place of the last character that was read. */
  #readHere(text: string, at: number): number {
    if (this.#inside.length >= this.#math) return at + 1
    if (text[at + 2] === '<') return at + 2
    const begun = HereDocument.begin(text, at)
    // Its end is not known, and so nothing that follows is.
    if (!begun) this.#isLost = true
    else this.#documents.push(begun.document)
    return begun ? begun.next - 1 : at + 1
  }

  #readPlain(char: string, wordStart: boolean): void {
    if (char === "'") this.#place = 'single'
    else if (char === '#' && wordStart) this.#comment = true
    else if (char === '(') this.#inside.push('paren')
    else if (char === ')' && this.#inside.pop() === 'paren') {
      if (this.#inside.length < this.#math) this.#math = Infinity
      this.#place = this.#outer()
    }
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
  if (place === 'single') return word.replaceAll("'", String.raw`'\''`)
  if (place === 'double') return word.replaceAll(/[\\"$`]/g, String.raw`\$&`)
  return quoteWord(word)
}
