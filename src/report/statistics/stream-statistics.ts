import type { RunEvent } from '../../core/events.ts'
import { formatBytes, plural } from '../format.ts'
import { clean } from '../text.ts'

type StreamEvent = Extract<RunEvent, { type: 'stream' }>

/** A file that grows, or that a step waits for. */
interface OpenStream {
  readonly event: StreamEvent
  /** Where it was at the event before, or at the first one. */
  readonly before: Pick<StreamEvent, 'at' | 'bytes'>
}

/** Bytes per second since the event before: it falls while nothing comes. */
const rateOf = ({ event, before }: OpenStream, now: number): number =>
  now > before.at ? (Math.max(0, event.bytes - before.bytes) * 1000) / (now - before.at) : 0

/** The files that programs pass on while they grow. Those that are complete are forgotten. */
export class StreamStatistics {
  readonly #open = new Map<string, OpenStream>()

  observe(event: StreamEvent): void {
    const { path, state } = event
    const isOpen = state === 'growing' || (state === 'absent' && waitingFor(event).length > 0)
    if (isOpen) this.#open.set(path, { event, before: this.#open.get(path)?.event ?? event })
    else this.#open.delete(path)
  }

  /** The busiest at this time, in the order in which they began, with what a line about each says. */
  busiest(most: number, now: number): { name: string; fields: string[] }[] {
    const all = [...this.#open.values()].map(stream => ({ event: stream.event, rate: rateOf(stream, now) }))
    const shown = new Set(all.toSorted((a, b) => b.rate - a.rate).slice(0, most))
    return all.filter(stream => shown.has(stream)).map(({ event, rate }) => lineOf(event, rate))
  }

  /** All together; null where there are none. */
  text(now: number): string | null {
    if (this.#open.size === 0) return null
    const rate = [...this.#open.values()].reduce((sum, stream) => sum + rateOf(stream, now), 0)
    return `${plural(this.#open.size, 'stream')} at ${formatBytes(rate)}/s`
  }
}

function lineOf(event: StreamEvent, rate: number): { name: string; fields: string[] } {
  const { path, bytes, producers, readers, state } = event
  const ends = `${producers.join('+')} > ${readers.map(({ name }) => name).join('+') || 'no reader'}`
  const fields = [clean(ends), state === 'absent' ? 'not there yet' : formatBytes(bytes)]
  if (rate > 0) fields.push(`${formatBytes(rate)}/s`)
  const waiting = waitingFor(event)
  if (waiting.length > 0) fields.push(`${clean(waiting.join(', '))} ${waiting.length > 1 ? 'wait' : 'waits'}`)
  return { name: clean(path), fields }
}

const waitingFor = ({ readers }: StreamEvent): string[] =>
  readers.filter(({ waits }) => waits !== null).map(({ name }) => name)
