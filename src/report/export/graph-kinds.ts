import type { RunEvent } from '../../core/events.ts'
import { GRAPH_HEAD, byText, dotAttributes, dotString } from './dot.ts'
import { formatCount } from '../format.ts'
import { IdTable } from '../statistics/id-table.ts'
import type { KindStatistics } from '../statistics/statistics-kind.ts'
import type { Statistics } from '../statistics/statistics.ts'

/**
 * What passes between kinds, for runs too large to be drawn task by task. A version is resolved when a task
 * that reads it is submitted; its makers were submitted before, because the program called them before.
 */
export class KindGraph {
  /** `from to`, by kind, with the number of versions that pass. */
  readonly edges = new Map<string, number>()
  /** Most versions have one maker, and a plain number costs a fraction of a list. */
  readonly #makers = new Map<number, number | Set<number>>()

  /** Kinds of the tasks that release versions which were not known when they were submitted. */
  readonly #kindOf = new IdTable()

  observe(event: RunEvent): void {
    if (event.type === 'released') return this.#released(event.version, event.task)
    if (event.type !== 'submitted') return
    this.#kindOf.set(event.task, event.kind + 1)
    for (const version of new Set(event.reads)) {
      const makers = this.#makers.get(version)
      if (makers === undefined) continue
      for (const maker of typeof makers === 'number' ? [makers] : makers) {
        const key = `${maker} ${event.kind}`
        this.edges.set(key, (this.edges.get(key) ?? 0) + 1)
      }
    }
    for (const version of event.writes) this.#made(version, event.kind)
  }

  #released(version: number, task: number): void {
    const kind = this.#kindOf.get(task) - 1
    if (kind >= 0) this.#made(version, kind)
  }

  #made(version: number, kind: number): void {
    const makers = this.#makers.get(version)
    if (makers === undefined) this.#makers.set(version, kind)
    else if (typeof makers !== 'number') makers.add(kind)
    else if (makers !== kind) this.#makers.set(version, new Set([makers, kind]))
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
