import fc from 'fast-check'
import type { RunEvent } from '../../src/core/events.ts'
import { runStarted } from './sample-run.ts'

export type Fate = 'ok' | 'failed' | 'ignored' | 'cancelled' | 'unstarted' | 'unfinished'

export interface RandomTask {
  kind: number
  fate: Fate
  /** How the attempts before the last were lost. */
  lost: ('retry' | 'returned')[]
  /** BusyIntervals of running of each attempt; between two of them it is blocked. */
  stretches: { lane: number; gap: number; ms: number }[]
  reads: number[]
}

export interface Truth {
  ranMs: Map<number, number>
  /** Time that all tasks ran, and during which any did, up to where the run stopped. */
  ranInAll: number
  anyRanMs: number
  /** What became of each task; `open` if it had not ended when the run stopped. */
  states: Map<number, 'done' | 'failed' | 'ignored' | 'cancelled' | 'open'>
  /** Tasks that were running when the run stopped. */
  running: Set<number>
}

export interface RandomRun {
  events: RunEvent[]
  /** What a careful observer would have found; times in milliseconds. */
  truth: Truth
}

const NODES = 2
const LANES = 3

const ms = fc.oneof(
  fc.nat(2000).map(value => value / 8),
  fc.double({ min: 0, max: 50, noNaN: true }),
)

const task: fc.Arbitrary<RandomTask> = fc.record({
  kind: fc.nat(2),
  fate: fc.constantFrom<Fate>('ok', 'ok', 'ok', 'failed', 'ignored', 'cancelled', 'unstarted', 'unfinished'),
  lost: fc.array(fc.constantFrom('retry' as const, 'returned' as const), { maxLength: 2 }),
  stretches: fc.array(fc.record({ lane: fc.nat(NODES * LANES - 1), gap: ms, ms }), {
    minLength: 1,
    maxLength: 3,
  }),
  reads: fc.array(fc.nat(20), { maxLength: 3 }),
})

/** Valid runs: no two tasks on a lane at a time, the events of each task in order, batches out of order. */
export const randomRun: fc.Arbitrary<RandomRun> = fc
  .record({ tasks: fc.array(task, { maxLength: 25 }), batch: fc.constantFrom(0.001, 10, 200) })
  .map(({ tasks, batch }) => build(tasks, batch))

function build(tasks: RandomTask[], batch: number): RandomRun {
  const free = Array.from({ length: NODES * LANES }, () => 0)
  const ends: number[] = []
  const events: RunEvent[] = []
  tasks.forEach((plan, index) => {
    const id = index + 1
    const reads = plan.reads.filter(read => read < index)
    events.push(submit(id, plan.kind, reads))
    let now = Math.max(0, ...reads.map(read => ends[read] ?? 0))
    ends.push(now)
    if (plan.fate === 'unstarted') return
    events.push({ type: 'ready', at: now, task: id })
    for (let attempt = 1; attempt <= plan.lost.length + 1; attempt++) {
      const isLast = attempt > plan.lost.length
      plan.stretches.forEach((stretch, part) => {
        const { lane } = stretch
        if (part > 0) events.push({ type: 'blocked', at: now, task: id, reason: 'waits' })
        const start = Math.max(now, free[lane]!) + stretch.gap
        const where = { node: Math.floor(lane / LANES), lane: lane % LANES }
        if (part > 0) events.push({ type: 'resumed', at: start, task: id, ...where })
        else events.push({ type: 'started', at: start, task: id, attempt, ...where, cpus: 1 })
        now = start + stretch.ms
        free[lane] = now
      })
      events.push(...ending(isLast ? plan.fate : plan.lost[attempt - 1]!, id, attempt, now))
      // A task that never ends holds its lane for ever.
      if (isLast && plan.fate === 'unfinished') free[plan.stretches.at(-1)!.lane] = 1e9
    }
    ends[index] = now
  })
  const usable = events.filter(event => event.at < 1e9)
  const place = new Map(usable.map((event, index) => [event, index]))
  const batchOf = (event: RunEvent): number => Math.floor(event.at / batch)
  usable.sort((a, b) => batchOf(a) - batchOf(b) || place.get(a)! - place.get(b)!)
  const head: RunEvent[] = [{ ...runStarted, nodes: twoNodes } as RunEvent]
  for (const kind of [0, 1, 2]) {
    head.push({ type: 'kind-defined', at: 0, kind, name: `kind${kind}`, form: 'function', module: 'm' })
  }
  return { events: [...head, ...usable], truth: truthOf(usable) }
}

/** Counted the slow and obvious way. */
function truthOf(events: RunEvent[]): Truth {
  const truth: Truth = { ranMs: new Map(), ranInAll: 0, anyRanMs: 0, states: new Map(), running: new Set() }
  const since = new Map<number, number>()
  const stretches: { from: number; to: number }[] = []
  for (const event of events) {
    if (!('task' in event)) continue
    const { task, at } = event
    if (event.type === 'submitted') truth.states.set(task, 'open')
    if (event.type === 'started' || event.type === 'resumed') {
      since.set(task, at)
      truth.running.add(task)
    } else if (since.has(task)) {
      truth.ranMs.set(task, (truth.ranMs.get(task) ?? 0) + at - since.get(task)!)
      stretches.push({ from: since.get(task)!, to: at })
      since.delete(task)
      truth.running.delete(task)
    }
    if (event.type === 'finished') truth.states.set(task, 'done')
    if (event.type === 'cancelled') truth.states.set(task, 'cancelled')
    if (event.type === 'failed' && event.next !== 'retry') {
      truth.states.set(task, event.next === 'ignore' ? 'ignored' : 'failed')
    }
  }
  const latest = Math.max(0, ...events.map(({ at }) => at))
  for (const task of truth.running) stretches.push({ from: since.get(task)!, to: latest })
  let reached = 0
  for (const { from, to } of stretches.toSorted((a, b) => a.from - b.from)) {
    truth.anyRanMs += Math.max(0, to - Math.max(reached, from))
    reached = Math.max(reached, to)
  }
  truth.ranInAll = stretches.reduce((sum, { from, to }) => sum + to - from, 0)
  return truth
}

const twoNodes = [
  { name: 'n1', cpus: LANES, memory: 1 },
  { name: 'n2', cpus: LANES, memory: 1 },
]

function submit(task: number, kind: number, reads: number[]): RunEvent {
  const rest = { parent: null, group: null, priority: 0 }
  return { type: 'submitted', at: 0, task, kind, ...rest, reads: reads.map(read => read + 1), writes: [task] }
}

function ending(how: Fate | 'retry' | 'returned', task: number, attempt: number, at: number): RunEvent[] {
  const failed = (next: 'retry' | 'fail' | 'ignore'): RunEvent[] => [
    { type: 'failed', at, task, attempt, failure: { name: 'Error', message: 'no' }, next },
  ]
  switch (how) {
    case 'ok':
      return [{ type: 'finished', at, task, attempt }]
    case 'failed':
      return failed('fail')
    case 'ignored':
      return failed('ignore')
    case 'retry':
      return failed('retry')
    case 'returned':
      return [{ type: 'returned', at, task, reason: 'thread died' }]
    case 'cancelled':
      return [{ type: 'cancelled', at, task, cause: null, reason: 'stopped' }]
    case 'unstarted':
    case 'unfinished':
      return []
  }
}
