import { HereDocument } from './here-document.ts'

/** How a value is written where it stands. */
export type Quoting = 'plain' | 'bare' | 'single' | 'double' | 'braces' | 'arithmetic' | HereDocument

const SAFE = /^[\w@%+=:,./-]+$/

/** A word as one would type it in a POSIX shell. */
export function quoteWord(word: string): string {
  return SAFE.test(word) ? word : quoted(word)
}

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`

/** No shell and no program takes it for anything but a number; `010` would be an eight. */
export const isNumber = (word: string): boolean => /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(word)

/** Null where it would end a here-document. */
export function quoteFor(quoting: Quoting, word: string): string | null {
  if (quoting instanceof HereDocument) return quoting.quote(word)
  switch (quoting) {
    case 'bare':
      return quoteWord(word)
    case 'plain':
      return isNumber(word) ? word : quoted(word)
    // `3-${-5}` must not become `3--5`.
    case 'arithmetic':
      return word.startsWith('-') ? ` ${word}` : word
    case 'single':
      return word.replaceAll("'", String.raw`'\''`)
    case 'double':
      return word.replaceAll(/[\\"$`]/g, String.raw`\$&`)
    case 'braces':
      return word.replaceAll(/[\\"$`}]/g, String.raw`\$&`)
  }
}
