import { STEPS } from '../../core/events.ts'
import type { AttemptSteps, RunEvent } from '../../core/events.ts'
import {
  FINISHED_KEPT,
  FINISHED_STEPS,
  FINISHED_USAGE,
  RECORD,
  STARTED_IMPLEMENTATION,
  STARTED_SHARE,
  SUBMITTED_DEMAND,
  SUBMITTED_FILES,
  SUBMITTED_GROUP,
  SUBMITTED_LABEL,
  SUBMITTED_PARENT,
  SUBMITTED_PRIORITY_COUNT,
  SUBMITTED_PRIORITY_EXACT,
  SUBMITTED_SAME_GROUP,
  TAG_EXACT,
  TAG_KIND,
} from './format.ts'

/** The events of one block whose crc has been checked. Throws RangeError if it is not of this format. */
export function decodeBlock(payload: Buffer): RunEvent[] {
  const decoder = new BlockDecoder(payload)
  const events: RunEvent[] = []
  while (decoder.more) events.push(decoder.next())
  return events
}

class BlockDecoder {
  readonly #bytes: Buffer
  #at = 0
  #lastMicros = 0
  #lastGroup = ''

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get more(): boolean {
    return this.#at < this.#bytes.length
  }

  next(): RunEvent {
    const tag = this.#byte()
    switch (tag & TAG_KIND) {
      case RECORD.submitted:
        return this.#submitted(tag)
      case RECORD.ready:
        return { type: 'ready', at: this.#time(tag), task: this.#count() }
      case RECORD.started:
        return this.#started(tag)
      case RECORD.finished:
        return this.#finished(tag)
      case RECORD.committed:
        return { type: 'committed', at: this.#time(tag), version: this.#count(), bytes: this.#count() }
      case RECORD.released:
        return { type: 'released', at: this.#time(tag), task: this.#count(), version: this.#count() }
      case RECORD.kept:
        return { type: 'kept', at: this.#time(tag), task: this.#count() }
      case RECORD.json: {
        const end = this.#skip(this.#count())
        return JSON.parse(this.#bytes.toString('utf8', end.from, end.to)) as RunEvent
      }
      default:
        throw new RangeError(`no record has the tag ${tag}`)
    }
  }

  #submitted(tag: number): RunEvent {
    const at = this.#time(tag)
    const task = this.#count()
    const kind = this.#count()
    const flags = this.#byte()
    const parent = flags & SUBMITTED_PARENT ? this.#count() : null
    if (flags & SUBMITTED_GROUP && !(flags & SUBMITTED_SAME_GROUP)) this.#lastGroup = this.#text()
    const group = flags & SUBMITTED_GROUP ? this.#lastGroup : null
    const priority =
      flags & SUBMITTED_PRIORITY_COUNT ? this.#count() : flags & SUBMITTED_PRIORITY_EXACT ? this.#float() : 0
    const reads = this.#list()
    const writes = this.#list()
    const event: RunEvent = { type: 'submitted', at, task, kind, parent, group, priority, reads, writes }
    if (flags & SUBMITTED_FILES) {
      event.files = []
      for (let left = this.#count(); left > 0; left--) {
        event.files.push({ version: this.#count(), path: this.#text() })
      }
    }
    if (flags & SUBMITTED_DEMAND) event.demand = this.#count()
    if (flags & SUBMITTED_LABEL) event.label = this.#text()
    return event
  }

  #started(tag: number): RunEvent {
    const event: RunEvent = {
      type: 'started',
      at: this.#time(tag),
      task: this.#count(),
      attempt: this.#count(),
      node: this.#count(),
      lane: this.#count(),
      cpus: tag & STARTED_SHARE ? this.#count() / 1000 : this.#count(),
    }
    if (tag & STARTED_IMPLEMENTATION) event.implementation = this.#text()
    return event
  }

  #finished(tag: number): RunEvent {
    const event: RunEvent = {
      type: 'finished',
      at: this.#time(tag),
      task: this.#count(),
      attempt: this.#count(),
    }
    if (tag & FINISHED_USAGE) {
      event.usage = {
        cpuMs: this.#count() / 1000,
        peakBytes: this.#count(),
        askedBytes: this.#count(),
        readBytes: this.#count(),
        writtenBytes: this.#count(),
      }
    }
    if (tag & FINISHED_STEPS) event.steps = this.#steps()
    if (tag & FINISHED_KEPT) event.kept = true
    return event
  }

  #steps(): AttemptSteps {
    const next = (): number => this.#count() / 1000
    const steps = { from: next() } as AttemptSteps
    for (const step of STEPS) steps[step] = next()
    return steps
  }

  #time(tag: number): number {
    if (tag & TAG_EXACT) return this.#float()
    const zigzag = this.#count()
    this.#lastMicros += zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2
    return this.#lastMicros / 1000
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw new RangeError('a record goes past the end of its block')
    return byte
  }

  #count(): number {
    let byte = this.#byte()
    let value = byte & 0x7f
    for (let unit = 128; byte > 0x7f; unit *= 128) {
      byte = this.#byte()
      value += (byte & 0x7f) * unit
    }
    return value
  }

  #float(): number {
    return this.#bytes.readDoubleLE(this.#skip(8).from)
  }

  #list(): number[] {
    const values: number[] = []
    for (let left = this.#count(); left > 0; left--) values.push(this.#count())
    return values
  }

  #text(): string {
    const head = this.#count()
    const isWide = head % 2 === 1
    const { from, to } = this.#skip(isWide ? head - 1 : head / 2)
    return this.#bytes.toString(isWide ? 'utf16le' : 'latin1', from, to)
  }

  #skip(size: number): { from: number; to: number } {
    const from = this.#at
    this.#at += size
    if (this.#at > this.#bytes.length) throw new RangeError('a record goes past the end of its block')
    return { from, to: this.#at }
  }
}
