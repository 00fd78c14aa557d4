import type { RunEvent } from '../../src/core/events.ts'
import type { SimulateOptions } from '../../src/simulate/simulate.ts'
import type { SimulatedOutcome } from '../../src/simulate/outcome.ts'
import { outcome } from './build.ts'
import type { Build } from './build.ts'

/** When and where a task ran, in seconds. */
export interface Span {
  kind: string
  node: number
  ready: number
  from: number
  to: number
}

export interface Timeline {
  spans: Span[]
  outcome: SimulatedOutcome
}

/** Simulates, and says of each task when it ran: what the papers show as traces. */
export async function timelineOf(write: (build: Build) => void, options: SimulateOptions): Promise<Timeline> {
  const kinds = new Map<number, string>()
  const open = new Map<number, Span>()
  const spans: Span[] = []
  const observer = (event: RunEvent): void => {
    const at = event.at / 1000
    if (event.type === 'kind-defined') kinds.set(event.kind, event.name)
    else if (event.type === 'submitted') {
      open.set(event.task, { kind: kinds.get(event.kind) ?? '', node: -1, ready: at, from: at, to: at })
    } else if (event.type === 'ready') setTo(open.get(event.task), { ready: at })
    else if (event.type === 'started') setTo(open.get(event.task), { node: event.node, from: at })
    else if (event.type === 'finished') {
      const span = open.get(event.task)
      if (!span) return
      span.to = at
      spans.push(span)
      open.delete(event.task)
    }
  }
  return { outcome: await outcome(write, { ...options, observer }), spans }
}

function setTo(span: Span | undefined, changed: Partial<Span>): void {
  if (span) Object.assign(span, changed)
}

/** How many of them there are at a time: from each moment on, until the next. */
export type Steps = readonly (readonly [at: number, count: number])[]

export function atOnce(
  spans: readonly Span[],
  begin: 'from' | 'ready' = 'from',
  end: 'to' | 'from' = 'to',
): Steps {
  const changes = spans.flatMap(span => [[span[begin], 1] as const, [span[end], -1] as const])
  changes.sort(([a, more], [b, less]) => a - b || more - less)
  const steps: [number, number][] = []
  let count = 0
  for (const [at, change] of changes) {
    count += change
    const last = steps.at(-1)
    if (last?.[0] === at) last[1] = count
    else steps.push([at, count])
  }
  return steps
}

/** The sum of `worth(count)` over the time between two moments. */
export function over(
  steps: Steps,
  worth: (count: number) => number,
  [from, to]: readonly [number, number] = [0, Infinity],
): number {
  let sum = 0
  steps.forEach(([at, count], i) => {
    const until = Math.min(to, steps[i + 1]?.[0] ?? at)
    sum += Math.max(0, until - Math.max(from, at)) * worth(count)
  })
  return sum
}

export const most = (steps: Steps, [from, to]: readonly [number, number] = [0, Infinity]): number =>
  Math.max(
    0,
    ...steps.filter(([at], i) => at < to && (steps[i + 1]?.[0] ?? at) > from).map(([, count]) => count),
  )

export const ofKind = (spans: readonly Span[], kind: string): Span[] =>
  spans.filter(span => span.kind === kind)
