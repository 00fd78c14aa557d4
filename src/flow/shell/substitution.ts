const CLOSING = new Map([
  ['(', ')'],
  ['{', '}'],
  ['[', ']'],
])

/**
 * `$(…)`, `${…}`, `$[…]` and backquotes in the text of a here-document. What would take a whole shell to find its end
 * never ends: a value that is quoted for the wrong place would be run.
 */
export class Substitution {
  /** What closes those that are open, the innermost last. */
  readonly #closing: string[] = []
  #quote = ''
  #isInBackquotes = false
  #isLost = false
  #last = ''

  get isOpen(): boolean {
    return this.#isLost || this.#isInBackquotes || this.#closing.length > 0
  }

  read(char: string, next: string | undefined, isEscaped: boolean): void {
    if (this.#isLost) return
    if (this.#isInBackquotes) this.#isInBackquotes = isEscaped || char !== '`'
    else if (this.#closing.length > 0) this.#readInside(char, next)
    else if (isEscaped) return
    else if (char === '`') this.#isInBackquotes = true
    else if (this.#open(char, next)) this.#last = char
  }

  #open(char: string, next: string | undefined): boolean {
    const closing = char === '$' ? CLOSING.get(next ?? '') : undefined
    if (closing) this.#closing.push(closing)
    return closing !== undefined
  }

  #readInside(char: string, next: string | undefined): void {
    const isCommand = this.#closing.at(-1) === ')'
    const before = this.#last
    this.#last = (before + char).slice(-4)
    if (char === '\\' || char === '`') this.#isLost = true
    else if (this.#quote !== '') this.#readQuoted(char, next)
    else if (char === "'" || char === '"') {
      this.#quote = char
      // In others than commands quotes may stand for themselves.
      this.#isLost = !isCommand
    } else if (this.#open(char, next)) return
    else if (isCommand && isHard(this.#last)) this.#isLost = true
    else if (char === '(' && isCommand && !before.endsWith('$')) this.#closing.push(')')
    else if (char === this.#closing.at(-1)) this.#closing.pop()
  }

  #readQuoted(char: string, next: string | undefined): void {
    if (char === this.#quote) this.#quote = ''
    else if (this.#quote === '"' && char === '$' && CLOSING.has(next ?? '')) this.#isLost = true
  }
}

/** Comments, here-documents, and `case`, in which a bracket closes that was not opened. */
const isHard = (last: string): boolean => last.endsWith('#') || last.endsWith('<<') || last === 'case'
