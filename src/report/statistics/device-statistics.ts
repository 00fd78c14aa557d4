import type { DeviceFacts, RunEvent } from '../../core/events.ts'
import { formatBytes, formatCount, formatDuration, plural } from '../format.ts'
import { clean } from '../text.ts'

type State = Extract<RunEvent, { type: 'device' }>
type Verdict = Extract<RunEvent, { type: 'verdict' }>
type Trial = Extract<RunEvent, { type: 'trial' }>

/** Of fewer tasks none are spent on learning. */
const LEAST_TASKS = 20

const IDLE: Omit<State, 'type' | 'at' | 'device'> = { read: 0, write: 0, used: 0, running: 0, waiting: 0 }

/** What is known of the devices of a run: what is in use, what was learned, what was moved. */
export class DeviceStatistics {
  #facts: readonly DeviceFacts[] = []
  readonly #states = new Map<number, Omit<State, 'type' | 'at' | 'device'>>()
  readonly #kinds = new Map<number, string>()
  readonly #verdicts = new Map<string, Verdict>()
  /** By kind, device and tasks at one time: what is tried again counts as it was last. */
  readonly #trials = new Map<string, Trial>()
  readonly #failed = new Map<number, string>()
  /** Demands whose bandwidth is to be learned, and the tasks per kind that have one. */
  readonly #learning = new Set<number>()
  readonly #learners = new Map<number, number>()
  #moves = 0
  #movedBytes = 0

  observe(event: RunEvent): void {
    switch (event.type) {
      case 'run-started':
        this.#facts = event.devices ?? []
        break
      case 'kind-defined':
        this.#kinds.set(event.kind, event.name)
        break
      case 'demand-defined': {
        const bandwidth = event.storage?.bandwidth
        if (bandwidth === 'auto' || (typeof bandwidth === 'object' && bandwidth !== null))
          this.#learning.add(event.demand)
        break
      }
      case 'submitted':
        if (event.demand === undefined || !this.#learning.has(event.demand)) break
        this.#learners.set(event.kind, (this.#learners.get(event.kind) ?? 0) + 1)
        break
      case 'device':
        this.#states.set(event.device, event)
        break
      case 'device-failed':
        this.#failed.set(event.device, event.reason)
        break
      case 'trial':
        this.#trials.set(`${event.kind}/${event.device}/${event.concurrency}/`, event)
        break
      case 'verdict':
        this.#verdicts.set(`${event.kind}/${event.device}`, event)
        break
      case 'move':
        if (event.phase !== 'done') break
        this.#moves++
        this.#movedBytes += event.bytes
        break
      default:
    }
  }

  nameOf(device: number): string {
    return clean(this.#facts[device]?.name ?? `device ${device}`)
  }

  /** A device that has something to do: its name, and what people want to know of it. */
  busy(): { name: string; fields: string[] }[] {
    const lines: { name: string; fields: string[] }[] = []
    for (const [index, { capacity, read, write }] of this.#facts.entries()) {
      const state = this.#states.get(index) ?? IDLE
      if (state.running + state.waiting === 0) continue
      const fields = [`${state.running} running`]
      if (state.write > 0) fields.push(`writes ${rate(state.write, write)}`)
      if (state.read > 0) fields.push(`reads ${rate(state.read, read)}`)
      if (state.waiting > 0) fields.push(`${formatCount(state.waiting)} waiting`)
      if (capacity !== null) fields.push(`${formatBytes(state.used)} of ${formatBytes(capacity)}`)
      lines.push({ name: this.nameOf(index), fields })
    }
    return lines
  }

  /** What was found out about limits, one sentence per kind and device. */
  verdicts(): string[] {
    return [...this.#verdicts.values()].map(({ kind, device, bandwidth, concurrency, learned }) => {
      const name = clean(this.#kinds.get(kind) ?? `kind ${kind}`)
      const cost = learned > 0 ? `, learned from ${plural(learned, 'task')}` : ''
      return `${name} on ${this.nameOf(device)}: ${concurrency} at a time, ${perSecond(bandwidth)} each${cost}`
    })
  }

  /** What was moved between devices; null if nothing was. */
  moved(): string | null {
    if (this.#moves === 0) return null
    return `${plural(this.#moves, 'file')} between devices, ${formatBytes(this.#movedBytes)}`
  }

  /** All that was tried and decided, for `millrace explain`. */
  explain(): string[] {
    const lines: string[] = []
    for (const verdict of this.#verdicts.values()) {
      const { kind, device, reason } = verdict
      const name = clean(this.#kinds.get(kind) ?? `kind ${kind}`)
      lines.push(`${name} on ${this.nameOf(device)}`)
      for (const trial of this.#trials.values()) {
        if (trial.kind !== kind || trial.device !== device) continue
        const { concurrency, bandwidth, mean } = trial
        lines.push(
          `  tried ${concurrency} at a time, ${perSecond(bandwidth)} each: ${formatDuration(mean)} per task`,
        )
      }
      lines.push(
        `  took ${verdict.concurrency} at a time, ${perSecond(verdict.bandwidth)} each: ${clean(reason)}`,
      )
    }
    const verdicts = [...this.#verdicts.values()]
    for (const [kind, count] of this.#learners) {
      if (verdicts.some(verdict => verdict.kind === kind)) continue
      const tasks = plural(count, 'task')
      const why =
        count < LEAST_TASKS ? `${tasks} are too few` : `of its ${tasks} hardly two waited at one time`
      lines.push(`${clean(this.#kinds.get(kind) ?? `kind ${kind}`)}: no limit was tried, ${why}`)
    }
    for (const [device, reason] of this.#failed) {
      lines.push(`${this.nameOf(device)} was left out: ${clean(reason)}`)
    }
    const moved = this.moved()
    if (moved !== null) lines.push(`moved ${moved}`)
    return lines
  }
}

const perSecond = (bytes: number): string => `${formatBytes(bytes)}/s`

const rate = (used: number, limit: number | null): string =>
  limit === null ? perSecond(used) : `${formatBytes(used)} of ${perSecond(limit)}`
