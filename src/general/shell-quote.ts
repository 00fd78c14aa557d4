const SAFE = /^[\w@%+=:,./-]+$/

const NAMED = new Map([
  ['\n', String.raw`\n`],
  ['\t', String.raw`\t`],
  ['\r', String.raw`\r`],
  ["'", String.raw`\'`],
  ['\\', String.raw`\\`],
])

const isControl = (char: string): boolean => char < ' ' || char === '\u007f'

const hex = (char: string): string => char.charCodeAt(0).toString(16).padStart(2, '0')

/** A word as one would type it in a POSIX shell; what cannot be typed, as bash and zsh write it. */
export function shellQuote(word: string): string {
  if (SAFE.test(word)) return word
  const chars = [...word]
  if (!chars.some(isControl)) return `'${word.replaceAll("'", `'\\''`)}'`
  const escaped = chars.map(char => NAMED.get(char) ?? (isControl(char) ? `\\x${hex(char)}` : char)).join('')
  return `$'${escaped}'`
}
