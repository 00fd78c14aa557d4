import type { RunEvent } from '../../core/events.ts'
import { GRAPH_HEAD, byText, dotAttributes, dotString } from './dot.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

type TaskState = 'waiting' | 'ready' | 'running' | 'ok' | 'failed' | 'cancelled' | 'ignored'

/** State is shown twice, by shape and by colour. */
const LOOKS: Record<TaskState, Record<string, string>> = {
  ok: { shape: 'box', fillcolor: '#d7f0d7' },
  failed: { shape: 'octagon', fillcolor: '#f4b6b6' },
  ignored: { shape: 'hexagon', fillcolor: '#f7dfa5' },
  cancelled: { shape: 'box', style: 'dashed', fontcolor: '#666666' },
  running: { shape: 'cds', fillcolor: '#bcd9f2' },
  ready: { shape: 'ellipse', fillcolor: '#e6eef7' },
  waiting: { shape: 'ellipse' },
}

const NESTED_NUMBERS =
  '// Tasks are numbered by their place in the program: 3.2 is the second call that task 3 made.'

interface Node {
  kind: number
  parent: number | null
  /** Its place among the calls of its parent, from 1. */
  place: number
  state: TaskState
  children: number[]
  reads: readonly number[]
  /** What its definition, or a trace, calls it; empty where they do not. */
  label: string
}

/**
 * The tasks of a run and what passes between them. Tasks are numbered by their place in the program: 3 is
 * the third call of the main program, 3.2 the second call that task 3 made. Without nested tasks these are
 * the ids of the tasks. With nested tasks ids depend on which thread was faster, and these numbers do not.
 */
export class TaskGraph {
  readonly nodes = new Map<number, Node>()
  readonly roots: number[] = []
  readonly makers = new Map<number, number[]>()
  readonly files = new Map<number, string>()
  isTooLarge = false
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  observe(event: RunEvent): void {
    if (this.isTooLarge) return
    switch (event.type) {
      case 'submitted':
        this.#submitted(event)
        break
      case 'ready':
        this.#move(event.task, 'ready')
        break
      case 'started':
      case 'resumed':
        this.#move(event.task, 'running')
        break
      case 'finished':
      case 'kept':
        this.#move(event.task, 'ok')
        break
      case 'failed':
        this.#move(event.task, stateAfter(event.next))
        break
      case 'returned':
        this.#move(event.task, 'ready')
        break
      case 'cancelled':
        this.#move(event.task, 'cancelled')
        break
      case 'released':
        this.#made(event.version, event.task)
        break
      default:
        break
    }
  }

  #submitted({ task, kind, parent, reads, writes, files, label = '' }: Of<'submitted'>): void {
    if (this.nodes.size === this.#limit) {
      this.isTooLarge = true
      this.nodes.clear()
      this.makers.clear()
      this.files.clear()
      return
    }
    const siblings = (parent === null ? null : this.nodes.get(parent)?.children) ?? this.roots
    siblings.push(task)
    const place = siblings.length
    this.nodes.set(task, { kind, parent, place, state: 'waiting', children: [], reads, label })
    for (const version of writes) this.#made(version, task)
    for (const { version, path } of files ?? []) this.files.set(version, path)
  }

  #made(version: number, task: number): void {
    const makers = this.makers.get(version)
    if (!makers) this.makers.set(version, [task])
    else if (!makers.includes(task)) makers.push(task)
  }

  #move(task: number, state: TaskState): void {
    const node = this.nodes.get(task)
    if (node) node.state = state
  }
}

export function detailedGraph(graph: TaskGraph, kinds: ReadonlyMap<number, string>): string[] {
  const lines = [...GRAPH_HEAD]
  const order = new Map<number, { index: number; path: string }>()
  const draw = (task: number, before: string, indent: string): void => {
    const node = graph.nodes.get(task)!
    const path = `${before}${node.place}`
    order.set(task, { index: order.size, path })
    const isCaller = node.children.length > 0
    if (isCaller) lines.push(`${indent}subgraph ${dotString(`cluster_t${path}`)} {`)
    const inner = isCaller ? `${indent}  ` : indent
    const name = `${kinds.get(node.kind) ?? `kind ${node.kind}`}#${path}`
    const label = node.label === '' ? name : `${name}\n${node.label}`
    lines.push(`${inner}${dotString(`t${path}`)}${dotAttributes({ label, ...LOOKS[node.state] })}`)
    for (const child of node.children) draw(child, `${path}.`, inner)
    if (isCaller) lines.push(`${indent}}`)
  }
  for (const task of graph.roots) draw(task, '', '  ')
  lines.push(...edgeLines(graph, order), '}')
  const isNested = graph.roots.length < graph.nodes.size
  return isNested ? [NESTED_NUMBERS, ...lines] : lines
}

function edgeLines(graph: TaskGraph, order: Map<number, { index: number; path: string }>): string[] {
  const lines: string[] = []
  for (const [task, { path }] of order) {
    const sources = new Map<number, Set<string>>()
    for (const version of graph.nodes.get(task)!.reads) {
      for (const maker of graph.makers.get(version) ?? []) {
        if (maker === task) continue
        const files = sources.get(maker) ?? new Set()
        sources.set(maker, files)
        const file = graph.files.get(version)
        if (file !== undefined) files.add(file)
      }
    }
    const sorted = [...sources].sort((a, b) => order.get(a[0])!.index - order.get(b[0])!.index)
    for (const [maker, files] of sorted) {
      const label = files.size > 0 ? [...files].sort(byText).join('\n') : undefined
      const from = dotString(`t${order.get(maker)!.path}`)
      lines.push(`  ${from} -> ${dotString(`t${path}`)}${dotAttributes({ label })}`)
    }
  }
  return lines
}

function stateAfter(next: Of<'failed'>['next']): TaskState {
  switch (next) {
    case 'retry':
      return 'ready'
    case 'ignore':
      return 'ignored'
    case 'fail':
    case 'cancelSuccessors':
      return 'failed'
  }
}
