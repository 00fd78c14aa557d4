/**
 * JSON with the place of every key and value, because a mistake in a configuration is only found quickly
 * when the message says where it is. Common slips (comments, trailing commas, single quotes, missing
 * commas, bare words) are reported and read over, so that one look at the messages shows all of them.
 */
import { type JsonProblem, type Place, placeText, Scanner, Stop } from './json-scan.ts'

export type { JsonProblem, Place } from './json-scan.ts'

export interface JsonMember {
  key: string
  keyAt: Place
  value: JsonNode
}

export type JsonNode =
  | { kind: 'object'; at: Place; members: JsonMember[] }
  | { kind: 'array'; at: Place; items: JsonNode[] }
  | { kind: 'string'; at: Place; value: string }
  | { kind: 'number'; at: Place; value: number }
  | { kind: 'boolean'; at: Place; value: boolean }
  | { kind: 'null'; at: Place }

const DEEPEST = 200
const ESCAPES: Record<string, string> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}
const WORDS = new Map<string, boolean | null>([
  ['true', true],
  ['false', false],
  ['null', null],
])
/** What other languages call them. */
const FOREIGN = new Map([
  ['True', 'true'],
  ['False', 'false'],
  ['None', 'null'],
  ['undefined', 'null'],
])

export function parseJson(text: string): { root?: JsonNode; problems: JsonProblem[] } {
  const parser = new Parser(text)
  try {
    const root = parser.document()
    return { root, problems: parser.problems }
  } catch (error) {
    if (!(error instanceof Stop)) throw error
    return { problems: parser.problems }
  }
}

class Parser extends Scanner {
  private depth = 0

  document(): JsonNode {
    this.skip()
    if (this.index >= this.text.length) this.stop(this.here(), 'the file is empty', 'write { … }')
    const root = this.value()
    this.skip()
    if (this.index < this.text.length) {
      const rest = this.text[this.index]!
      const closing = rest === '}' || rest === ']'
      this.report(
        this.here(),
        `'${rest}' follows after the end of the document`,
        closing
          ? 'remove it, or open the bracket that it closes'
          : 'a file holds one JSON value: remove the rest',
      )
    }
    return root
  }

  private value(): JsonNode {
    const at = this.here()
    const char = this.text[this.index]
    if (char === undefined) this.stop(at, 'the file ends where a value is expected', 'complete the file')
    if (char === '{' || char === '[') {
      if (++this.depth > DEEPEST)
        this.stop(at, `more than ${DEEPEST} brackets inside each other`, 'nest less')
      const node = char === '{' ? this.object(at) : this.array(at)
      this.depth--
      return node
    }
    if (char === '"' || char === "'" || char === '“') return { kind: 'string', at, value: this.string() }
    if (/[-+.0-9]/.test(char)) return this.number(at)
    if (/[A-Za-z_]/.test(char)) return this.word(at)
    const fix =
      char === ',' ? 'remove the comma, or write the value before it' : 'write a value, or remove it'
    return this.stop(at, `'${char}' where a value is expected`, fix)
  }

  private object(at: Place): JsonNode {
    this.step()
    const members: JsonMember[] = []
    for (;;) {
      this.skip()
      if (this.closes('}', at)) break
      const keyAt = this.here()
      const key = this.key(at)
      this.skip()
      if (this.text[this.index] === ':') this.step()
      else if (this.text[this.index] === '=') {
        this.report(this.here(), "'=' between a key and its value", "write ':'")
        this.step()
      } else {
        const fix = `write "${key}": and its value, or use [ ] for a list of strings`
        this.stop(this.here(), `no ':' after the key "${key}"`, fix)
      }
      this.skip()
      members.push({ key, keyAt, value: this.value() })
      this.separator('}', at)
    }
    return { kind: 'object', at, members }
  }

  private array(at: Place): JsonNode {
    this.step()
    const items: JsonNode[] = []
    for (;;) {
      this.skip()
      if (this.closes(']', at)) break
      items.push(this.value())
      this.skip()
      if (this.text[this.index] === ':') {
        this.stop(
          this.here(),
          "a key with ':' inside a list",
          'use { } around keys and values, [ ] around a list',
        )
      }
      this.separator(']', at)
    }
    return { kind: 'array', at, items }
  }

  private key(opened: Place): string {
    const char = this.text[this.index]!
    if (char === '"' || char === "'" || char === '“') return this.string()
    const word = /^[A-Za-z_][\w-]*/.exec(this.text.slice(this.index, this.index + 200))?.[0]
    if (word !== undefined) {
      this.report(this.here(), `the key ${word} has no quotes`, `write "${word}"`)
      this.index += word.length
      return word
    }
    const list = char === '{' || char === '['
    return this.stop(
      this.here(),
      `'${char}' where a key is expected`,
      list
        ? `a list of objects needs [ ] around it: write '[' at ${placeText(opened)}`
        : 'write "key": value',
    )
  }

  /** True, and past it, when the bracket of this list or object closes here. */
  private closes(bracket: '}' | ']', opened: Place): boolean {
    const char = this.text[this.index]
    if (char === bracket) {
      this.step()
      return true
    }
    const opening = bracket === '}' ? '{' : '['
    if (char === undefined) {
      const message = `the file ends, but the '${opening}' of ${placeText(opened)} is not closed`
      this.stop(this.here(), message, `write the missing '${bracket}'`)
    }
    if (char === '}' || char === ']') {
      const message = `'${char}' closes the '${opening}' of ${placeText(opened)}`
      this.stop(this.here(), message, `write '${bracket}' here: a bracket is missing or of the wrong kind`)
    }
    return false
  }

  private separator(bracket: '}' | ']', opened: Place): void {
    this.skip()
    const char = this.text[this.index]
    if (char === bracket || char === undefined || char === '}' || char === ']') return
    const at = this.here()
    if (char !== ',') {
      if (!/["'“{[\w-]/.test(char)) this.closesOrStop(bracket, opened, char)
      this.report(
        at,
        `a comma is missing before this ${char === '{' || char === '[' ? 'bracket' : 'text'}`,
        "write ','",
      )
      return
    }
    this.step()
    this.skip()
    const next = this.text[this.index]
    if (next === '}' || next === ']') {
      this.report(at, `a comma before the closing '${next}'`, 'remove the comma')
    }
  }

  private closesOrStop(bracket: string, opened: Place, char: string): never {
    const fix = char === ';' ? "write ','" : `write ',' or the closing '${bracket}'`
    return this.stop(this.here(), `'${char}' inside the brackets of ${placeText(opened)}`, fix)
  }

  private string(): string {
    const at = this.here()
    const opening = this.text[this.index]!
    const closing = opening === '“' ? '”' : opening
    if (opening === "'") this.report(at, 'a string in single quotes', 'use double quotes: "…"')
    if (opening === '“') this.report(at, 'a string in typographic quotes', 'use plain double quotes: "…"')
    this.index++
    let value = ''
    for (;;) {
      const char = this.text[this.index]
      if (char === closing) break
      if (char === undefined || char === '\n')
        this.stop(at, 'this string is not closed on its line', `add the closing ${closing}`)
      if (char === '\\') value += this.escape()
      else {
        if (char < ' ' && char !== '\r')
          this.report(this.here(), 'a control character inside a string', 'write \\t or \\u00XX')
        value += char
        this.index++
      }
    }
    this.index++
    return value
  }

  private escape(): string {
    const at = this.here()
    const char = this.text[this.index + 1] ?? ''
    if (char === 'u') {
      const hex = this.text.slice(this.index + 2, this.index + 6)
      this.index += 6
      if (/^[0-9a-fA-F]{4}$/.test(hex)) return String.fromCharCode(parseInt(hex, 16))
      return this.stop(at, `'\\u${hex}' is not a character`, 'write \\u and four hexadecimal digits')
    }
    this.index += 2
    const plain = ESCAPES[char]
    if (plain !== undefined) return plain
    // In patterns people write "a\*b", which JSON does not allow: the meaning is clear, so read on.
    this.report(
      at,
      `'\\${char}' is not an escape of JSON`,
      `write '\\\\${char}' for a backslash before ${char}`,
    )
    return `\\${char}`
  }

  private number(at: Place): JsonNode {
    const text = /^[-+.\w]+/.exec(this.text.slice(this.index, this.index + 60))![0]
    this.index += text.length
    if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/.test(text)) {
      const value = Number(text)
      const fix = Number.isFinite(value) ? `write ${value}` : 'write a number, or put quotes around text'
      this.report(at, `${text} is not a number of JSON`, fix)
    }
    return { kind: 'number', at, value: Number(text) }
  }

  private word(at: Place): JsonNode {
    const word = /^\w[\w.*?/:-]*/.exec(this.text.slice(this.index, this.index + 400))![0]
    this.index += word.length
    let value = WORDS.get(word)
    if (value === undefined) {
      const meant = FOREIGN.get(word)
      this.report(at, `${word} has no quotes`, `write ${meant ?? `"${word}"`}`)
      if (meant === undefined) return { kind: 'string', at, value: word }
      value = WORDS.get(meant) ?? null
    }
    return value === null ? { kind: 'null', at } : { kind: 'boolean', at, value }
  }
}
