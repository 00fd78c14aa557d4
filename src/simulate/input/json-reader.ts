import { MillraceError } from '../../core/errors.ts'
import { parseJson } from '../../source/json.ts'
import type { JsonNode, Place } from '../../source/json.ts'
import { NOWHERE, lazyNode } from './large-json.ts'

type Kind = JsonNode['kind']
type Of<K extends Kind> = Extract<JsonNode, { kind: K }>

/** An object of a JSON file, with the places of its members. */
export interface Fields {
  readonly at: Place
  readonly path: string
  readonly members: ReadonlyMap<string, JsonNode>
}

const SHOWN = 10

const letters = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/** Reads a JSON file of a known shape and collects all that is wrong in it, each with its place. */
export class JsonReader {
  readonly file: string
  readonly root: JsonNode | undefined
  readonly #problems: { at: Place; text: string }[] = []

  /** Above `large` characters it does without places. */
  constructor(text: string, file: string, large: number) {
    this.file = file
    if (text.length > large) {
      this.root = lazyNode(this.#parseLarge(text))
      return
    }
    const { root, problems } = parseJson(text)
    this.root = root
    for (const { at, message, fix } of problems) this.complain(at, `${message} (${fix})`)
    this.expectNone('The file is not JSON.')
  }

  #parseLarge(text: string): unknown {
    try {
      return JSON.parse(text) as unknown
    } catch (error) {
      const { message } = error as Error
      const offset = /at position (\d+)/.exec(message)?.[1]
      const before = text.slice(0, Number(offset ?? text.length)).split('\n')
      const at = { ...NOWHERE, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
      this.complain(at, message)
      this.expectNone('The file is not JSON.')
      return null
    }
  }

  complain(at: Place, text: string): void {
    this.#problems.push({ at, text })
  }

  /** Throws if there was anything to complain of. */
  expectNone(hint: string): void {
    if (this.#problems.length === 0) return
    const lines = this.#problems.slice(0, SHOWN).map(({ at, text }) => `${this.placeOf(at)}: ${text}`)
    if (this.#problems.length > SHOWN) lines.push(`and ${this.#problems.length - SHOWN} more`)
    throw new MillraceError('MR_WORKFLOW_FILE', lines.join('\n'), { hint })
  }

  /** Of large files only what is no JSON has a place. */
  placeOf(at: Place): string {
    return at === NOWHERE ? this.file : `${this.file}:${at.line}:${at.column}`
  }

  /** Other fields are left alone, but not a known one that is spelt in another way. */
  object(node: JsonNode | undefined, path: string, known: readonly string[]): Fields | null {
    const given = this.#of(node, path, 'object')
    if (!given) return null
    const members = new Map<string, JsonNode>()
    for (const { key, keyAt, value } of given.members) {
      if (members.has(key)) this.complain(keyAt, `${path} has '${key}' twice`)
      else if (!known.includes(key)) {
        const meant = known.find(one => letters(one) === letters(key))
        if (meant) this.complain(keyAt, `${path} has no field '${key}'; did you mean '${meant}'?`)
      }
      members.set(key, value)
    }
    return { at: given.at, path, members }
  }

  member(fields: Fields, key: string): JsonNode | undefined {
    const node = fields.members.get(key)
    if (!node) this.complain(fields.at, `${fields.path} has no '${key}'`)
    return node
  }

  items(node: JsonNode | undefined, path: string): JsonNode[] {
    return this.#of(node, path, 'array')?.items ?? []
  }

  text(fields: Fields, key: string): string {
    return this.#of(this.member(fields, key), `${fields.path}.${key}`, 'string')?.value ?? ''
  }

  texts(fields: Fields, key: string): { value: string; at: Place }[] {
    const path = `${fields.path}.${key}`
    const node = fields.members.get(key)
    if (!node) return []
    return this.items(node, path).flatMap((item, i) => this.#of(item, `${path}[${i}]`, 'string') ?? [])
  }

  /** A number that cannot be negative, or above what can be meant; null when it is not there. */
  amount(fields: Fields, key: string, most = Number.MAX_SAFE_INTEGER): number | null {
    const node = fields.members.get(key)
    if (!node) return null
    const number = this.#of(node, `${fields.path}.${key}`, 'number')
    if (!number) return null
    if (number.value < 0) this.complain(number.at, `${fields.path}.${key} is ${number.value}: below 0`)
    if (number.value > most) {
      this.complain(number.at, `${fields.path}.${key} is ${number.value}: above ${most}`)
    }
    return number.value
  }

  #of<K extends Kind>(node: JsonNode | undefined, path: string, kind: K): Of<K> | null {
    if (!node) return null
    if (node.kind === kind) return node as Of<K>
    this.complain(node.at, `${path} is ${article(node.kind)}, not ${article(kind)}`)
    return null
  }
}

const article = (kind: Kind): string =>
  kind === 'null' ? 'null' : /^[ao]/.test(kind) ? `an ${kind}` : `a ${kind}`
