import { clean } from '../text.ts'

/** A string as DOT writes it. `\n` in what is given becomes a line break of the label. */
export function dotString(text: string): string {
  const lines = text.split('\n').map(line => clean(line).replaceAll('\\', '\\\\').replaceAll('"', '\\"'))
  return `"${lines.join('\\n')}"`
}

export function dotAttributes(attributes: Record<string, string | undefined>): string {
  const parts = Object.entries(attributes)
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .map(([name, value]) => `${name}=${dotString(value)}`)
  return parts.length === 0 ? '' : ` [${parts.join(', ')}]`
}

export const GRAPH_HEAD = [
  'digraph run {',
  '  rankdir=LR',
  '  node [fontname="sans-serif", style=filled, fillcolor=white]',
  '  edge [fontname="sans-serif", fontsize=10]',
]

/** Sorts texts by code unit: `localeCompare` differs between machines. */
export function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
