import { stripVTControlCharacters } from 'node:util'

/** Names come from users: an escape sequence or a line break in one must not reach the screen. */
export function clean(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what this removes
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '?')
}

/** Like `clean`, for text of several lines such as the output of a program. */
export function cleanLines(text: string): string[] {
  const lines = stripVTControlCharacters(text)
    .split(/\r*\n/)
    .map(line => clean(line.slice(line.lastIndexOf('\r') + 1).replaceAll('\t', '    ')))
  while (lines.length > 0 && lines.at(-1) === '') lines.pop()
  return lines
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u
const ZERO = /[\p{Mn}\p{Me}\p{Cf}]/u

function charWidth(char: string): number {
  if (char < '\u0300') return 1
  return ZERO.test(char) ? 0 : WIDE.test(char) ? 2 : 1
}

/** Columns that a text takes on a screen; colour codes take none. */
export function width(text: string): number {
  let sum = 0
  for (const char of stripVTControlCharacters(text)) sum += charWidth(char)
  return sum
}

export function padEnd(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - width(text)))
}

function take(chars: string[], columns: number): string[] {
  const taken: string[] = []
  let used = 0
  for (const char of chars) {
    used += charWidth(char)
    if (used > columns) break
    taken.push(char)
  }
  return taken
}

/** Cuts a name in its middle, where names differ least; both ends stay. */
export function elide(name: string, columns: number, ellipsis: string): string {
  if (width(name) <= columns) return name
  const room = columns - width(ellipsis)
  const chars = Array.from(name)
  if (room < 2) return take(chars, Math.max(0, columns)).join('')
  const head = take(chars, Math.ceil(room / 2)).join('')
  const tail = take(chars.toReversed(), room - width(head))
    .toReversed()
    .join('')
  return head + ellipsis + tail
}

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
