import { clean } from '../../text.ts'
import type { RunModel } from '../state/run-model.ts'
import type { CriticalStep, GraphEdge, GraphNode, GraphSection } from '../protocol.ts'
import { countsOf } from './overview.ts'

const SHOWN_KINDS = 80
const SHOWN_STEPS = 60
const SHOWN_TASKS = 60

/** The graph of kinds, with the critical path of what has run so far. */
export function graphSection(model: RunModel): GraphSection {
  const path = criticalPath(model)
  const onPath = new Set(path.map(({ task }) => model.tasks.kinds.get(task)))
  const stepEdges = new Set<string>()
  path.forEach(({ task }, i) => {
    const next = path[i + 1]
    if (next) stepEdges.add(`${model.tasks.kinds.get(task)}>${model.tasks.kinds.get(next.task)}`)
  })
  const kinds = [...model.statistics.kinds.values()].filter(kind => kind.submitted > 0)
  kinds.sort((a, b) => b.submitted - a.submitted || a.kind - b.kind)
  const shown = new Set(kinds.slice(0, SHOWN_KINDS).map(kind => kind.kind))
  const nodes = kinds.slice(0, SHOWN_KINDS).map((kind): GraphNode => ({
    id: `k${kind.kind}`,
    name: clean(kind.name),
    kind: kind.kind,
    task: null,
    counts: countsOf(kind),
    state: null,
    busyMs: kind.busyMs,
    isCritical: onPath.has(kind.kind),
  }))
  const edges = model.edges.all().filter(({ from, to }) => shown.has(from) && shown.has(to))
  return {
    nodes: nodes.sort((a, b) => a.kind - b.kind),
    edges: edges.map(({ from, to, count }) => ({
      from: `k${from}`,
      to: `k${to}`,
      count,
      isCritical: stepEdges.has(`${from}>${to}`),
    })),
    leftOut: Math.max(0, kinds.length - SHOWN_KINDS),
    critical: {
      ms: path.reduce((sum, step) => sum + step.waitMs + step.runMs, 0),
      length: path.length,
      steps: path.slice(-SHOWN_STEPS).map(step => ({ ...step, name: clean(step.name) })),
    },
  }
}

/** Backwards from the task that ended last: each step is the input that came last. In order of time. */
export function criticalPath(model: RunModel): CriticalStep[] {
  const { tasks, versions } = model
  let task = -1
  for (let i = 0; i <= tasks.last; i++)
    if (tasks.endedAt.get(i) > (task < 0 ? -1 : tasks.endedAt.get(task))) task = i
  const steps: CriticalStep[] = []
  const seen = new Set<number>()
  while (task >= 0 && !seen.has(task)) {
    seen.add(task)
    const startedAt = tasks.startedAt.get(task)
    let before = -1
    let latest = -Infinity
    for (const version of tasks.readsOf(task)) {
      const maker = versions.makers.get(version)
      const madeAt = versions.madeAt.get(version)
      if (maker < 0 || maker === task || !(madeAt > latest)) continue
      latest = madeAt
      before = maker
    }
    const from = Number.isFinite(latest) ? latest : tasks.submittedAt.get(task)
    const runMs = Math.max(0, tasks.endedAt.get(task) - startedAt) || 0
    steps.push({ task, name: model.taskName(task), waitMs: Math.max(0, startedAt - from) || 0, runMs })
    task = before
  }
  return steps.toReversed()
}

/** The tasks around one: what feeds it, and what reads what it makes, some steps away. */
export function nearGraph(model: RunModel, task: number, hops: number): GraphSection {
  const { tasks, versions } = model
  const found = new Map<number, number>([[task, 0]])
  const edges = new Map<string, GraphEdge>()
  let leftOut = 0
  const path = criticalPath(model)
  const critical = new Set(path.map(step => step.task))
  const link = (from: number, to: number): void => {
    const key = `${from}>${to}`
    const edge = edges.get(key)
    if (edge) edge.count++
    else
      edges.set(key, {
        from: `t${from}`,
        to: `t${to}`,
        count: 1,
        isCritical: critical.has(from) && critical.has(to),
      })
  }
  const reach = (other: number, distance: number): boolean => {
    if (found.has(other)) return true
    if (found.size >= SHOWN_TASKS) {
      leftOut++
      return false
    }
    found.set(other, distance)
    return true
  }
  // The map grows while it is walked, by one hop at a time.
  for (const [one, distance] of found) {
    if (distance >= hops) continue
    for (const version of new Set(tasks.readsOf(one))) {
      const maker = versions.makers.get(version)
      if (maker >= 0 && maker !== one && reach(maker, distance + 1)) link(maker, one)
    }
    for (const version of tasks.writesOf(one)) {
      for (const reader of versions.readersOf(version, SHOWN_TASKS))
        if (reader !== one && reach(reader, distance + 1)) link(one, reader)
    }
  }
  const nodes = [...found.keys()].map((one): GraphNode => ({
    id: `t${one}`,
    name: clean(model.taskName(one)),
    kind: tasks.kinds.get(one),
    task: one,
    counts: null,
    state: tasks.stateOf(one),
    busyMs: Math.max(0, tasks.endedAt.get(one) - tasks.startedAt.get(one)) || 0,
    isCritical: critical.has(one),
  }))
  return { nodes, edges: dedupe(edges), leftOut, critical: { ms: 0, length: path.length, steps: [] } }
}

/** Both ends of an edge may have found it. */
const dedupe = (edges: ReadonlyMap<string, GraphEdge>): GraphEdge[] =>
  [...edges.values()].map(edge => ({ ...edge, count: 1 }))
