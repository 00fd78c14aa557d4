import { stripVTControlCharacters } from 'node:util'

/** Controls, line separators, and what turns the direction of text around, so that it reads as something else. */
// oxlint-disable-next-line no-control-regex -- control characters are what this finds
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Names come from users: an escape sequence or a line break in one must not reach the screen. */
export function clean(text: string): string {
  return stripVTControlCharacters(text).replace(UNSEEN, '?')
}

// oxlint-disable-next-line no-control-regex -- control characters are what this finds
const OWN_COLOURS = /(\u001b\[(?:[12]|22|3[1239])m)/

/** Text of several lines before it goes to a screen: nothing but text, line ends, tabs and our own colours is left. */
export function printable(text: string): string {
  const shown = (part: string): string =>
    stripVTControlCharacters(part)
      .replaceAll('\r\n', '\n')
      .replace(UNSEEN, char => (char === '\n' || char === '\t' ? char : '?'))
  return text
    .split(OWN_COLOURS)
    .map((part, i) => (i % 2 === 1 ? part : shown(part)))
    .join('')
}

/** JSON says the same with these escaped. */
export const escapeUnseen = (json: string): string =>
  json.replace(UNSEEN, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

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
