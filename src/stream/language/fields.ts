import type { JsonNode, Place } from '../../source/json.ts'
import { nearest } from '../../general/nearest.ts'
import type { Problems } from './problems.ts'
import type { Written } from './language.ts'

type ObjectNode = Extract<JsonNode, { kind: 'object' }>

/** Words that people write for a key, and the key. What is merely mistyped needs no entry here. */
const MEANT: Record<string, string> = {
  steps: 'IO_Graph',
  graph: 'IO_Graph',
  inputs: 'input_stream',
  input: 'input_stream',
  outputs: 'output_stream',
  output: 'output_stream',
  rules: 'streaming',
  commit: 'committed',
  fire: 'mode',
  firing: 'mode',
  files: 'name',
  file: 'name',
  dir: 'dirname',
  directory: 'dirname',
  deps: 'file_deps',
  depends_on: 'file_deps',
  alias: 'aliases',
  groups: 'aliases',
  excluded: 'exclude',
  ignore: 'exclude',
  keep: 'permanent',
}

const KINDS: Record<JsonNode['kind'], string> = {
  object: 'an object { }',
  array: 'a list [ ]',
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  null: 'null',
}

export const kindText = (node: JsonNode): string => KINDS[node.kind]

/** One object of the configuration with the checks that all objects need: known keys, each once. */
export class Fields {
  readonly at: Place
  readonly field: string
  private readonly found = new Map<string, { value: JsonNode; at: Place }>()
  private readonly problems: Problems

  constructor(node: ObjectNode, field: string, known: readonly string[], problems: Problems) {
    this.at = node.at
    this.field = field
    this.problems = problems
    for (const { key, keyAt, value } of node.members) {
      const path = this.path(key)
      const before = this.found.get(key)
      if (!known.includes(key)) problems.error(keyAt, path, `unknown key '${key}'`, keyFix(key, known))
      else if (before !== undefined) {
        problems.error(
          keyAt,
          path,
          `'${key}' is here twice, first in line ${before.at.line}`,
          'keep one of them',
        )
      } else this.found.set(key, { value, at: keyAt })
    }
  }

  path(key: string): string {
    return this.field === '' ? key : `${this.field}.${key}`
  }

  has(key: string): boolean {
    return this.found.has(key)
  }

  /** Place of the key, or of the object when the key is missing. */
  keyAt(key: string): Place {
    return this.found.get(key)?.at ?? this.at
  }

  node(key: string): JsonNode | undefined {
    return this.found.get(key)?.value
  }

  /** The first of several spellings of one key; two of them at once is a mistake. */
  either(keys: readonly string[]): string | undefined {
    const present = keys.filter(key => this.has(key))
    if (present.length > 1) {
      const [first, second] = present as [string, string]
      const message = `'${first}' and '${second}' are two spellings of one key`
      this.problems.error(this.keyAt(second), this.path(second), message, `keep '${keys[0]}'`)
    }
    return present[0]
  }

  wrong(key: string, wanted: string): void {
    const node = this.node(key)!
    const message = `${wanted} is needed here, not ${kindText(node)}`
    this.problems.error(node.at, this.path(key), message, `write ${wanted}`)
  }

  string(key: string, example: string): Written | undefined {
    const node = this.node(key)
    if (node === undefined) return undefined
    if (node.kind === 'string' && node.value !== '')
      return { text: node.value, at: node.at, field: this.path(key) }
    if (node.kind === 'string')
      this.problems.error(node.at, this.path(key), 'an empty string', `write ${example}`)
    else this.wrong(key, `a string like ${example}`)
    return undefined
  }

  /** A whole number of at least 1. */
  count(key: string): number | undefined {
    const node = this.node(key)
    if (node === undefined) return undefined
    if (node.kind === 'number' && Number.isSafeInteger(node.value) && node.value >= 1) return node.value
    if (node.kind === 'string' && /^[1-9]\d{0,8}$/.test(node.value)) {
      this.problems.warning(node.at, this.path(key), 'a number in quotes', `write ${node.value}`)
      return Number(node.value)
    }
    this.problems.error(
      node.at,
      this.path(key),
      'a whole number of at least 1 is needed here',
      'write 1 or more',
    )
    return undefined
  }

  /** A list of strings; a single string stands for a list of one, as the paper writes it. */
  strings(key: string): Written[] {
    const node = this.node(key)
    if (node === undefined) return []
    return stringsOf(node, this.path(key), this.problems)
  }

  /** The objects of a list; a single object stands for a list of one. */
  objects(key: string, known: readonly string[]): Fields[] {
    const node = this.node(key)
    if (node === undefined) return []
    const items = node.kind === 'array' ? node.items : [node]
    const out: Fields[] = []
    items.forEach((item, index) => {
      const path = node.kind === 'array' ? `${this.path(key)}[${index}]` : this.path(key)
      if (item.kind === 'object') out.push(new Fields(item, path, known, this.problems))
      else {
        const message = `an object { } is needed here, not ${kindText(item)}`
        this.problems.error(
          item.at,
          path,
          message,
          `write { ${known
            .slice(0, 2)
            .map(k => `"${k}": …`)
            .join(', ')} }`,
        )
      }
    })
    return out
  }
}

export function stringsOf(node: JsonNode, field: string, problems: Problems): Written[] {
  if (node.kind === 'string') return [{ text: node.value, at: node.at, field }]
  if (node.kind !== 'array') {
    problems.error(
      node.at,
      field,
      `a list of names is needed here, not ${kindText(node)}`,
      'write ["name", …]',
    )
    return []
  }
  const out: Written[] = []
  node.items.forEach((item, index) => {
    const path = `${field}[${index}]`
    if (item.kind === 'string') out.push({ text: item.value, at: item.at, field: path })
    else problems.error(item.at, path, `a name is needed here, not ${kindText(item)}`, 'write "name"')
  })
  return out
}

function keyFix(key: string, known: readonly string[]): string {
  const meant = Object.hasOwn(MEANT, key.toLowerCase()) ? MEANT[key.toLowerCase()] : undefined
  const near = nearest(key, known) ?? (meant !== undefined && known.includes(meant) ? meant : null)
  if (near !== null) return `did you mean '${near}'?`
  return `remove it; the keys here are ${known.join(', ')}`
}
