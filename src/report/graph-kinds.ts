import type { RunEvent } from '../core/events.ts'
import { GRAPH_HEAD, byText, dotAttributes, dotString } from './dot.ts'
import { formatCount } from './format.ts'
import type { KindStatistics } from './statistics-kind.ts'
import type { Statistics } from './statistics.ts'

/**
 * What passes between kinds, for runs too large to be drawn task by task. A version is resolved when a task
 * that reads it is submitted; its makers were submitted before, because the program called them before.
 */
export class KindGraph {
  /** `from to`, by kind, with the number of versions that pass. */
  readonly edges = new Map<string, number>()
  /** Most versions have one maker, and a plain number costs a fraction of a list. */
  readonly #makers = new Map<number, number | Set<number>>()

  observe(event: RunEvent): void {
    if (event.type !== 'submitted') return
    for (const version of new Set(event.reads)) {
      const makers = this.#makers.get(version)
      if (makers === undefined) continue
      for (const maker of typeof makers === 'number' ? [makers] : makers) {
        const key = `${maker} ${event.kind}`
        this.edges.set(key, (this.edges.get(key) ?? 0) + 1)
      }
    }
    for (const version of event.writes) {
      const makers = this.#makers.get(version)
      if (makers === undefined) this.#makers.set(version, event.kind)
      else if (typeof makers !== 'number') makers.add(event.kind)
      else if (makers !== event.kind) this.#makers.set(version, new Set([makers, event.kind]))
    }
  }
}

export function groupedGraph(graph: KindGraph, statistics: Statistics, limit: number): string[] {
  const kinds = [...statistics.kinds.values()]
    .filter(kind => kind.submitted > 0)
    .sort((a, b) => byText(a.name, b.name) || a.kind - b.kind)
  const names = nodeNames(kinds)
  const all = formatCount(statistics.total.submitted)
  const label = `${all} tasks, drawn by kind because there are more than ${formatCount(limit)}`
  const lines = [...GRAPH_HEAD, `  label=${dotString(label)}`]
  for (const kind of kinds) {
    const attributes = { label: `${kind.name}\n${counts(kind)}`, ...look(kind) }
    lines.push(`  ${dotString(names.get(kind.kind)!)}${dotAttributes(attributes)}`)
  }
  const order = new Map(kinds.map((kind, index) => [kind.kind, index]))
  const edges = [...graph.edges].map(([key, count]) => {
    const [from, to] = key.split(' ').map(Number) as [number, number]
    return { from, to, count }
  })
  edges.sort((a, b) => order.get(a.from)! - order.get(b.from)! || order.get(a.to)! - order.get(b.to)!)
  for (const { from, to, count } of edges) {
    const ends = `${dotString(names.get(from)!)} -> ${dotString(names.get(to)!)}`
    lines.push(`  ${ends}${dotAttributes({ label: formatCount(count) })}`)
  }
  lines.push('}')
  return lines
}

/** Two kinds of one name in two modules are two nodes. */
function nodeNames(kinds: KindStatistics[]): Map<number, string> {
  const names = new Map<number, string>()
  const taken = new Map<string, number>()
  for (const { kind, name } of kinds) {
    const times = (taken.get(name) ?? 0) + 1
    taken.set(name, times)
    names.set(kind, times === 1 ? name : `${name} (${times})`)
  }
  return names
}

function counts(kind: KindStatistics): string {
  const ended = kind.done + kind.failed + kind.cancelled + kind.ignored
  const parts = [`${formatCount(kind.submitted)} tasks`]
  const add = (count: number, word: string): void => {
    if (count > 0) parts.push(`${formatCount(count)} ${word}`)
  }
  add(kind.failed, 'failed')
  add(kind.ignored, 'ignored')
  add(kind.cancelled, 'cancelled')
  add(kind.submitted - ended, 'not ended')
  return parts.join('\n')
}

function look(kind: KindStatistics): Record<string, string> {
  if (kind.failed > 0) return { shape: 'octagon', fillcolor: '#f4b6b6' }
  if (kind.done === kind.submitted) return { shape: 'box', fillcolor: '#d7f0d7' }
  return { shape: 'box', fillcolor: '#f7dfa5' }
}
