import { Substitution } from './substitution.ts'

const WORD_END = /[\s;|&<>()]/

/** The lines after a command with `<<WORD`, up to the line that is that word alone. */
export class HereDocument {
  readonly word: string
  /** `<<'WORD'`: the shell looks at nothing in it. */
  readonly isVerbatim: boolean
  /** `<<-WORD`: tabs in front of lines do not count. */
  readonly #stripsTabs: boolean
  #line = ''
  #isEscaped = false
  #endsInDollar = false
  readonly #inside = new Substitution()

  constructor(word: string, isVerbatim: boolean, stripsTabs: boolean) {
    this.word = word
    this.isVerbatim = isVerbatim
    this.#stripsTabs = stripsTabs
  }

  /** We are in a command, whose quoting would be another one, at the `$` of one, or after a backslash. */
  get isInCommand(): boolean {
    return this.#inside.isOpen || this.#endsInDollar || (this.#isEscaped && !this.isVerbatim)
  }

  /** What `<<` at this place begins, and where the text goes on; null where the word is not all there. */
  static begin(text: string, at: number): { document: HereDocument; next: number } | null {
    let i = at + 2
    const stripsTabs = text[i] === '-'
    if (stripsTabs) i++
    while (text[i] === ' ' || text[i] === '\t') i++
    let word = ''
    let quote = ''
    let isVerbatim = false
    for (; i < text.length; i++) {
      const char = text[i] as string
      if (quote === '' && WORD_END.test(char)) break
      if (char === quote) quote = ''
      else if (quote === '' && (char === "'" || char === '"')) {
        quote = char
        isVerbatim = true
      } else if (char === '\\' && quote !== "'") {
        isVerbatim = true
        word += text[++i] ?? ''
      } else word += char
    }
    // It may be arithmetic.
    if (!isVerbatim && /^\d|[[\]{}$=]/.test(word)) return null
    if (word === '' || quote !== '' || i >= text.length) return null
    return { document: new HereDocument(word, isVerbatim, stripsTabs), next: i }
  }

  /** One more character; true when the document has ended with it. */
  read(char: string, next: string | undefined): boolean {
    if (char === '\n') {
      const line = this.#stripsTabs ? this.#line.replace(/^\t+/, '') : this.#line
      this.#line = ''
      this.#isEscaped = this.#endsInDollar = false
      return line === this.word
    }
    if (!this.isVerbatim) this.#inside.read(char, next, this.#isEscaped)
    this.#endsInDollar = char === '$' && !this.#isEscaped && !this.isVerbatim
    this.#isEscaped = char === '\\' && !this.#isEscaped
    this.#line += char
    return false
  }

  /** Something was put in: the line is not the word any more. */
  interpolated(): void {
    this.#line += '\0'
    this.#isEscaped = this.#endsInDollar = false
  }

  /** The value as it has to be written here; null where it would end the document. */
  quote(value: string): string | null {
    const lines = value.split('\n').map(line => (this.#stripsTabs ? line.replace(/^\t+/, '') : line))
    if (lines.includes(this.word)) return null
    return this.isVerbatim ? value : value.replaceAll(/[\\$`]/g, String.raw`\$&`)
  }
}
