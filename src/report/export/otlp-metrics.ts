import type { DeviceFacts, RunEvent } from '../../core/events.ts'
import { attributes, nano, type Attribute } from './otlp-values.ts'

interface Point {
  startTimeUnixNano: string
  timeUnixNano: string
  attributes: Attribute[]
  asDouble: number
}

export interface Metric {
  name: string
  unit: string
  description: string
  gauge?: { dataPoints: Point[] }
  sum?: { dataPoints: Point[]; aggregationTemporality: number; isMonotonic: boolean }
}

/** Points of one metric of one device. Where there would be more, those in between are left out. */
const MOST_POINTS = 500
const CUMULATIVE = 2

type State = Extract<RunEvent, { type: 'device' }>

/** Bandwidth, room and queue of each device over time; tasks and running time of each kind at the end. */
export class OtlpMetrics {
  #startMs = 0
  #latest = 0
  #devices: readonly DeviceFacts[] = []
  readonly #states = new Map<number, State[]>()
  readonly #kinds = new Map<number, string>()
  readonly #kindOf = new Map<number, { kind: number; at: number }>()
  readonly #sums = new Map<string, { kind: string; outcome: string; count: number; ms: number }>()

  observe(event: RunEvent): void {
    this.#latest = Math.max(this.#latest, event.at)
    switch (event.type) {
      case 'run-started':
        this.#startMs = Date.parse(event.wallTime)
        this.#devices = event.devices ?? []
        break
      case 'kind-defined':
        this.#kinds.set(event.kind, event.name)
        break
      case 'submitted':
        this.#kindOf.set(event.task, { kind: event.kind, at: NaN })
        break
      case 'started': {
        const known = this.#kindOf.get(event.task)
        if (known) known.at = event.at
        break
      }
      case 'finished':
        this.#count(event.task, event.at, 'ok')
        break
      case 'failed':
        this.#count(event.task, event.at, 'failed')
        break
      case 'device': {
        const states = this.#states.get(event.device) ?? []
        states.push(event)
        if (states.length >= MOST_POINTS * 2)
          this.#states.set(
            event.device,
            states.filter((_, i) => i % 2 === 1),
          )
        else this.#states.set(event.device, states)
        break
      }
      default:
    }
  }

  all(): Metric[] {
    const gauge = (
      name: string,
      unit: string,
      description: string,
      read: (state: State) => number,
    ): Metric[] => {
      const dataPoints = [...this.#states].flatMap(([device, states]) =>
        states.map(state =>
          this.#point(state.at, read(state), { device: this.#devices[device]?.name ?? `${device}` }),
        ),
      )
      return dataPoints.length === 0 ? [] : [{ name, unit, description, gauge: { dataPoints } }]
    }
    const sum = (name: string, unit: string, description: string, read: 'count' | 'ms'): Metric[] => {
      const dataPoints = [...this.#sums.values()].map(one =>
        this.#point(this.#latest, read === 'ms' ? one.ms / 1000 : one.count, {
          kind: one.kind,
          outcome: one.outcome,
        }),
      )
      if (dataPoints.length === 0) return []
      return [
        {
          name,
          unit,
          description,
          sum: { dataPoints, aggregationTemporality: CUMULATIVE, isMonotonic: true },
        },
      ]
    }
    return [
      ...gauge(
        'millrace.device.write.given',
        'By/s',
        'Write bandwidth that is given out.',
        ({ write }) => write,
      ),
      ...gauge('millrace.device.read.given', 'By/s', 'Read bandwidth that is given out.', ({ read }) => read),
      ...gauge('millrace.device.used', 'By', 'Room that is taken.', ({ used }) => used),
      ...gauge('millrace.device.running', '{task}', 'Tasks that use the device.', ({ running }) => running),
      ...gauge(
        'millrace.device.waiting',
        '{task}',
        'Tasks that wait for the device.',
        ({ waiting }) => waiting,
      ),
      ...sum('millrace.attempts', '{attempt}', 'Attempts by kind and outcome.', 'count'),
      ...sum('millrace.running_time', 's', 'Running time by kind and outcome.', 'ms'),
    ]
  }

  #count(task: number, at: number, outcome: string): void {
    const known = this.#kindOf.get(task)
    if (!known || Number.isNaN(known.at)) return
    const kind = this.#kinds.get(known.kind) ?? `kind ${known.kind}`
    const key = `${kind}/${outcome}`
    const sum = this.#sums.get(key) ?? { kind, outcome, count: 0, ms: 0 }
    sum.count++
    sum.ms += Math.max(0, at - known.at)
    this.#sums.set(key, sum)
  }

  #point(at: number, value: number, labels: Record<string, string>): Point {
    return {
      startTimeUnixNano: nano(this.#startMs, 0),
      timeUnixNano: nano(this.#startMs, at),
      attributes: attributes(labels),
      asDouble: value,
    }
  }
}
