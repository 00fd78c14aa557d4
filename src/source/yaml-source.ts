import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'
import type { Document, LineCounter, Node, YAMLMap } from 'yaml'
import { nearest } from '../general/nearest.ts'

/** One thing that is wrong in a file, and where. */
export interface Problem {
  readonly line: number
  readonly column: number
  readonly text: string
  readonly hint: string
}

/** A key with its value, and where each of them stands. */
export interface Entry {
  readonly key: string
  /** The way to it: `nodes[0].storage[1].bandwidth`. */
  readonly field: string
  readonly keyAt: number
  readonly value: Node | null
}

/** Loaded at the first use: no run without such a file has to wait for it. */
const library = (): typeof Yaml => createRequire(import.meta.url)('yaml') as typeof Yaml

/** The text of a YAML or JSON file, read so that every mistake can be shown in its place. */
export class YamlSource {
  readonly problems: Problem[] = []
  readonly root: Node | null
  readonly #lines: LineCounter
  readonly #document: Document.Parsed
  readonly #yaml = library()

  /** `isPlain`: the text is YAML as it is, without `12 x {…}`. */
  constructor(text: string, { isPlain = false } = {}) {
    this.#lines = new this.#yaml.LineCounter()
    this.#document = this.#yaml.parseDocument(isPlain ? text : withTags(text), {
      lineCounter: this.#lines,
      prettyErrors: false,
      logLevel: 'error',
    })
    for (const { message, pos } of this.#document.errors) {
      // The library's own words for this are meant for programmers.
      const isSecond = message.includes('multiple documents')
      const text = isSecond
        ? 'a second document begins here'
        : (message.split('\n')[0] ?? 'it cannot be read')
      this.complain(pos[0], text, isSecond ? 'Leave out the line ---.' : 'Correct the syntax first.')
    }
    this.root = this.#document.contents
  }

  /** All of it as a plain value. */
  get value(): unknown {
    return this.#document.toJS()
  }

  complain(offset: number, text: string, hint: string): void {
    const { line, col } = this.#lines.linePos(offset)
    this.problems.push({ line, column: col, text, hint })
  }

  /** Where a value stands; for a key without a value, the key. */
  at({ value, keyAt }: Entry): number {
    return value?.range?.[0] ?? keyAt
  }

  wrong(entry: Entry, expected: string, hint: string): null {
    this.complain(this.at(entry), `${entry.field} is ${this.#shown(entry.value)}, not ${expected}`, hint)
    return null
  }

  /** The entries of a map whose keys are all known; others are complained of. */
  map(value: Node | null, field: string, known: readonly string[]): Map<string, Entry> | null {
    const node = this.#resolve(value)
    if (!this.#yaml.isMap(node)) {
      const what = field === '' ? 'the file' : field
      this.complain(
        value?.range?.[0] ?? 0,
        `${what} is ${this.#shown(node)}, not a list of keys and values`,
        `Keys: ${known.join(', ')}.`,
      )
      return null
    }
    const entries = new Map<string, Entry>()
    for (const { key, value: inner } of (node as YAMLMap<Node, Node | null>).items) {
      const name = this.#yaml.isScalar(key) ? String(key.value) : '?'
      const keyAt = key.range?.[0] ?? 0
      const entry = { key: name, field: field === '' ? name : `${field}.${name}`, keyAt, value: inner }
      if (known.includes(name)) entries.set(name, entry)
      else this.#unknown(entry, field, known)
    }
    return entries
  }

  list(entry: Entry): Entry[] | null {
    const node = this.#resolve(entry.value)
    if (!this.#yaml.isSeq(node)) return null
    return node.items.map((item, i) => ({
      key: String(i),
      field: `${entry.field}[${i}]`,
      keyAt: (item as Node | null)?.range?.[0] ?? entry.keyAt,
      value: item as Node | null,
    }))
  }

  /** The 12 of `12 x {…}`; null if it stands there once. */
  times({ value }: Entry): number | null {
    const [, count] = /^!(\d+)$/.exec(value?.tag ?? '') ?? []
    return count === undefined ? null : Number(count)
  }

  isMap(entry: Entry): boolean {
    return this.#yaml.isMap(this.#resolve(entry.value))
  }

  /** A single value: text, number or truth value; undefined for anything else. */
  scalar(entry: Entry): string | number | boolean | undefined {
    const node = this.#resolve(entry.value)
    const value = this.#yaml.isScalar(node) ? node.value : undefined
    return ['string', 'number', 'boolean'].includes(typeof value) ? (value as string) : undefined
  }

  #unknown({ key, keyAt }: Entry, field: string, known: readonly string[]): void {
    const close = nearest(key, known)
    const where = field === '' ? 'the file has' : `${field} has`
    this.complain(
      keyAt,
      `${where} no key '${key}'${close ? `; did you mean '${close}'?` : ''}`,
      `Keys: ${known.join(', ')}.`,
    )
  }

  #resolve(node: Node | null): Node | null | undefined {
    return this.#yaml.isAlias(node) ? node.resolve(this.#document) : node
  }

  #shown(value: Node | null | undefined): string {
    const node = this.#resolve(value ?? null)
    if (this.#yaml.isScalar(node)) return node.value === null ? 'empty' : `'${String(node.value)}'`
    if (this.#yaml.isMap(node)) return 'a map'
    return this.#yaml.isSeq(node) ? 'a list' : 'empty'
  }
}

/** `12 x {` is no YAML; a tag of the same length in its place is, and leaves everything else where it stands. */
const withTags = (text: string): string =>
  text.replace(/(?<=^|[-:,[]) *\d+ *x *\{/gm, found => {
    const [, before = '', count = '', spaces = ''] = /^( *)(\d+)( *)x/.exec(found) ?? []
    const rest = found.length - before.length - count.length - 2
    return rest < 1 && spaces === '' ? found : `${before}!${count}${' '.repeat(rest)}{`
  })
