/** Live view of a running workflow: what each stream has carried, how fast, and who waits for it. */
import type { Plan, PlanRule } from '../board/plan.ts'
import { ruleFinder } from '../board/plan.ts'
import type { FileLine, Snapshot, WaitLine } from '../board/snapshot.ts'
import { columns, counted, elide } from '../board/table.ts'

export interface StreamState {
  rule: PlanRule
  files: number
  complete: number
  failed: number
  bytes: number
  /** Bytes per second since the last look. */
  rate: number
  /** How far the slowest waiting reader is behind the writer; undefined when none waits for data. */
  lag: number | undefined
  waiting: string[]
}

/** Follows the streams from one look at the board to the next. */
export class Progress {
  private readonly plan: Plan
  private readonly find: (name: string) => PlanRule | undefined
  private readonly known = new Map<string, PlanRule | undefined>()
  private readonly before = new Map<PlanRule, number>()
  private time = 0

  constructor(plan: Plan) {
    this.plan = plan
    this.find = ruleFinder(plan)
  }

  /** The streams that have begun, or that a step waits for, in the order of the plan. `now` in ms. */
  look(snapshot: Snapshot, now: number): StreamState[] {
    const states = new Map<PlanRule, StreamState>()
    const state = (path: string): StreamState | undefined => {
      const rule = this.ruleOf(path)
      if (rule === undefined) return undefined
      let found = states.get(rule)
      if (found === undefined) {
        found = { rule, files: 0, complete: 0, failed: 0, bytes: 0, rate: 0, lag: undefined, waiting: [] }
        states.set(rule, found)
      }
      return found
    }
    const sizes = new Map<string, number>()
    for (const file of snapshot.files) {
      if (file.state === 'absent' || (file.kind === 'dir' && file.state === 'growing')) continue
      const entry = state(file.path)
      if (entry === undefined) continue
      if (file.kind === 'file') addFile(entry, file)
      sizes.set(file.path, bytesOf(file))
    }
    for (const wait of snapshot.waits) {
      const entry = state(wait.path)
      if (entry === undefined) continue
      if (wait.for === 'data' && wait.at !== null) {
        entry.lag = Math.max(entry.lag ?? 0, (sizes.get(wait.path) ?? 0) - wait.at)
      }
      const text = waitText(wait)
      if (!entry.waiting.includes(text)) entry.waiting.push(text)
    }
    const seconds = (now - this.time) / 1000
    for (const entry of states.values()) {
      const before = this.before.get(entry.rule) ?? 0
      if (this.time > 0 && seconds > 0) entry.rate = Math.max(0, (entry.bytes - before) / seconds)
      this.before.set(entry.rule, entry.bytes)
    }
    this.time = now
    const order = new Map(this.plan.rules.map((rule, index) => [rule, index]))
    return [...states.values()].toSorted((a, b) => order.get(a.rule)! - order.get(b.rule)!)
  }

  private ruleOf(path: string): PlanRule | undefined {
    if (!this.known.has(path)) this.known.set(path, this.find(path))
    return this.known.get(path)
  }
}

const bytesOf = (file: FileLine): number => Math.max(file.written ?? 0, file.size ?? 0)

function addFile(entry: StreamState, file: FileLine): void {
  entry.files++
  if (file.state === 'committed') entry.complete++
  if (file.state === 'failed') entry.failed++
  entry.bytes += bytesOf(file)
}

const FOR = { data: 'data', commit: 'the end', exists: 'its start', list: 'the list' } as const

const waitText = (wait: WaitLine): string =>
  `${wait.step ?? `pid ${wait.pid}`} waits for ${FOR[wait.for] ?? wait.for}`

/** One line per stream, the busiest when there are more than fit. */
export function progressLines(states: StreamState[], width: number, most: number): string[] {
  const shown = states
    .toSorted((a, b) => b.rate - a.rate || b.waiting.length - a.waiting.length)
    .slice(0, most)
  const rows = states
    .filter(state => shown.includes(state))
    .map(state => [
      `  ${state.rule.pattern.text}${state.rule.directory ? '/' : ''}`,
      `${state.rule.producers.join('+')} > ${state.rule.consumers.join('+') || 'no reader'}`,
      filesText(state),
      byteText(state.bytes),
      `${byteText(state.rate)}/s`,
      state.lag === undefined ? '' : `lag ${byteText(state.lag)}`,
      state.waiting.join(', '),
    ])
  const lines = rows.length === 0 ? [] : columns(rows, width)
  if (states.length > shown.length)
    lines.push(elide(`  and ${counted(states.length - shown.length, 'stream')} more`, width))
  return lines
}

function filesText(state: StreamState): string {
  if (state.files === 0) return 'to come'
  if (state.failed > 0) return `${state.failed} failed`
  if (state.files === 1) return state.complete === 1 ? 'complete' : 'growing'
  return `${state.complete}/${state.files} complete`
}

/** `12.3 MB`: three digits, as far as they say something. */
export function byteText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let value = bytes
  let unit = 0
  for (; value >= 999.5 && unit < units.length - 1; unit++) value /= 1000
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** `850 ms`, `12.3 s`, `4m05s`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`
}
