/** Where in a shell text an interpolation stands; it decides how it has to be quoted. */
export type Place = 'plain' | 'single' | 'double' | 'unsafe'

/**
 * Reads shell text piece by piece, as far as quoting goes: quotes, backslashes, comments and $( ) inside
 * double quotes.
 */
export class ShellScanner {
  /** The innermost last. `paren` is a $( ) or ( ) whose inside is plain again. */
  readonly #inside: ('double' | 'paren')[] = []
  #place: Place = 'plain'
  #comment = false
  #wordStart = true

  get place(): Place {
    return this.#comment ? 'unsafe' : this.#place
  }

  /** Something was put between two pieces: the next character does not begin a word. */
  interpolated(): void {
    this.#wordStart = false
  }

  read(text: string): void {
    for (let i = 0; i < text.length; i++) {
      const char = text[i] as string
      const next = text[i + 1]
      if (this.#comment) {
        this.#comment = char !== '\n'
        continue
      }
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
        i++
      } else if (char === '"') this.#place = this.#place === 'double' ? 'plain' : 'double'
      else if (this.#place === 'plain') this.#readPlain(char, wordStart)
    }
  }

  #readPlain(char: string, wordStart: boolean): void {
    if (char === "'") this.#place = 'single'
    else if (char === '#' && wordStart) this.#comment = true
    else if (char === '(') this.#inside.push('paren')
    else if (char === ')' && this.#inside.pop() === 'paren') this.#place = this.#outer()
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

export function quoteFor(place: Place, word: string): string {
  if (place === 'single') return word.replaceAll("'", String.raw`'\''`)
  if (place === 'double') return word.replaceAll(/[\\"$`]/g, String.raw`\$&`)
  return quoteWord(word)
}
