import type { AttemptSteps, RunEvent, TaskUsage } from '../../core/events.ts'
import {
  BLOCK_HEADER_BYTES,
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
  blockCrc,
} from './format.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** Room that every record may use without asking: tag, time and five counts, with space to spare. */
const SLACK = 96
const COUNT_BYTES = 8

/**
 * Builds one block at a time. This is the hot path of a run with millions of tasks: plain stores into a
 * buffer, no objects made, no calls into Node for the seven frequent types.
 */
export class BlockEncoder {
  #bytes: Buffer
  #view: DataView
  #at = BLOCK_HEADER_BYTES
  /** Set when a value does not fit the binary form; the record is then taken back and written as JSON. */
  #misfit = false
  #lastMicros = 0
  #lastGroup: string | null = null

  constructor(buffer: Buffer) {
    this.#bytes = buffer
    this.#view = viewOf(buffer)
  }

  /** Bytes of this block so far, with its header. */
  get size(): number {
    return this.#at
  }

  get isEmpty(): boolean {
    return this.#at === BLOCK_HEADER_BYTES
  }

  /** Ends the block and begins the next in `next`. What it returns is ready to be written. */
  seal(next: Buffer): Buffer {
    const block = this.#bytes.subarray(0, this.#at)
    const payload = block.subarray(BLOCK_HEADER_BYTES)
    block.writeUInt32LE(payload.length, 0)
    block.writeUInt32LE(blockCrc(payload), 4)
    this.#bytes = next
    this.#view = viewOf(next)
    this.#at = BLOCK_HEADER_BYTES
    this.#lastMicros = 0
    this.#lastGroup = null
    return block
  }

  add(event: RunEvent): void {
    const start = this.#at
    const micros = this.#lastMicros
    const group = this.#lastGroup
    this.#ensure(SLACK)
    switch (event.type) {
      case 'submitted':
        this.#submitted(event)
        break
      case 'ready':
        this.#tagAndTime(RECORD.ready, event.at)
        this.#count(event.task)
        break
      case 'started':
        if (event.device === undefined) this.#started(event)
        else this.#json(event)
        break
      case 'finished':
        this.#finished(event)
        break
      case 'committed':
        this.#tagAndTime(RECORD.committed, event.at)
        this.#count(event.version)
        this.#count(event.bytes)
        break
      case 'released':
        this.#tagAndTime(RECORD.released, event.at)
        this.#count(event.task)
        this.#count(event.version)
        break
      case 'kept':
        this.#tagAndTime(RECORD.kept, event.at)
        this.#count(event.task)
        break
      case 'run-started':
      case 'kind-defined':
      case 'demand-defined':
      case 'found':
      case 'blocked':
      case 'resumed':
      case 'failed':
      case 'cancelled':
      case 'returned':
      case 'node-joined':
      case 'node-left':
      case 'measured':
      case 'thread-died':
      case 'device':
      case 'device-failed':
      case 'waits':
      case 'trial':
      case 'verdict':
      case 'move':
      case 'stream':
      case 'value':
      case 'removed':
      case 'intermediate':
      case 'arguments':
      case 'control':
      case 'note':
      case 'interrupted':
      case 'run-ended':
        this.#json(event)
        break
      default:
        // A new type of event stops the compiler here until its form is chosen.
        event satisfies never
    }
    if (this.#misfit) {
      this.#misfit = false
      this.#at = start
      this.#lastMicros = micros
      this.#lastGroup = group
      this.#json(event)
    }
  }

  #submitted(event: Of<'submitted'>): void {
    const { parent, group, priority, reads, writes, files, demand, label } = event
    this.#ensure(SLACK + (reads.length + writes.length) * COUNT_BYTES)
    this.#tagAndTime(RECORD.submitted, event.at)
    this.#count(event.task)
    this.#count(event.kind)
    const flagsAt = this.#at++
    let flags = 0
    if (parent !== null) {
      flags |= SUBMITTED_PARENT
      this.#count(parent)
    }
    if (group !== null) {
      flags |= SUBMITTED_GROUP
      if (group === this.#lastGroup) flags |= SUBMITTED_SAME_GROUP
      else this.#text(group)
      this.#lastGroup = group
    }
    if (priority !== 0) {
      if (priority > 0 && Number.isSafeInteger(priority)) {
        flags |= SUBMITTED_PRIORITY_COUNT
        this.#count(priority)
      } else {
        flags |= SUBMITTED_PRIORITY_EXACT
        this.#view.setFloat64(this.#at, priority, true)
        this.#at += 8
      }
    }
    this.#ensure(SLACK + (reads.length + writes.length) * COUNT_BYTES)
    this.#list(reads)
    this.#list(writes)
    if (files !== undefined) {
      flags |= SUBMITTED_FILES
      this.#count(files.length)
      for (const { version, path } of files) {
        this.#ensure(SLACK)
        this.#count(version)
        this.#text(path)
      }
    }
    if (demand !== undefined) {
      flags |= SUBMITTED_DEMAND
      this.#ensure(SLACK)
      this.#count(demand)
    }
    if (label !== undefined) {
      flags |= SUBMITTED_LABEL
      this.#text(label)
    }
    this.#bytes[flagsAt] = flags
  }

  #started(event: Of<'started'>): void {
    const named = event.implementation !== undefined
    const isShare = event.cpus > 0 && event.cpus < 1
    const flags = (named ? STARTED_IMPLEMENTATION : 0) | (isShare ? STARTED_SHARE : 0)
    this.#tagAndTime(RECORD.started | flags, event.at)
    this.#count(event.task)
    this.#count(event.attempt)
    this.#count(event.node)
    this.#count(event.lane)
    this.#count(isShare ? Math.round(event.cpus * 1000) : event.cpus)
    if (event.implementation !== undefined) this.#text(event.implementation)
  }

  #finished({ at, task, attempt, usage, steps, kept }: Of<'finished'>): void {
    const measured = (usage === undefined ? 0 : FINISHED_USAGE) | (steps === undefined ? 0 : FINISHED_STEPS)
    const flags = measured | (kept ? FINISHED_KEPT : 0)
    this.#tagAndTime(RECORD.finished | flags, at)
    this.#count(task)
    this.#count(attempt)
    if (usage !== undefined) this.#usage(usage)
    if (steps === undefined) return
    this.#ensure(SLACK)
    this.#steps(steps)
  }

  /** In the order of `STEPS`; each by its name, as there is one for each task and a loop over names takes long. */
  #steps(steps: AttemptSteps): void {
    this.#micros(steps.from)
    this.#micros(steps.fetch)
    this.#micros(steps.queue)
    this.#micros(steps.decode)
    this.#micros(steps.run)
    this.#micros(steps.wait)
    this.#micros(steps.encode)
    this.#micros(steps.report)
    this.#micros(steps.commit)
  }

  #micros(milliseconds: number): void {
    const micros = Math.round(milliseconds * 1000)
    if (micros / 1000 !== milliseconds) this.#misfit = true
    this.#count(micros)
  }

  #usage(usage: TaskUsage): void {
    this.#micros(usage.cpuMs)
    this.#count(usage.peakBytes)
    this.#count(usage.askedBytes)
    this.#count(usage.readBytes)
    this.#count(usage.writtenBytes)
  }

  #json(event: RunEvent): void {
    const text = JSON.stringify(event)
    const size = Buffer.byteLength(text)
    this.#ensure(SLACK + size)
    this.#bytes[this.#at++] = RECORD.json
    this.#count(size)
    this.#at += this.#bytes.write(text, this.#at, 'utf8')
  }

  #tagAndTime(tag: number, at: number): void {
    const micros = Math.round(at * 1000)
    // Only a time that comes back as the same number may take the short form.
    if (micros / 1000 === at && micros < 2 ** 50 && micros >= 0) {
      this.#bytes[this.#at++] = tag
      const delta = micros - this.#lastMicros
      this.#lastMicros = micros
      this.#count(delta < 0 ? -2 * delta - 1 : 2 * delta)
    } else {
      this.#bytes[this.#at++] = tag | TAG_EXACT
      this.#view.setFloat64(this.#at, at, true)
      this.#at += 8
    }
  }

  #count(value: number): void {
    const bytes = this.#bytes
    let at = this.#at
    if (value >>> 0 === value) {
      let rest = value
      while (rest > 0x7f) {
        bytes[at++] = (rest & 0x7f) | 0x80
        rest >>>= 7
      }
      bytes[at++] = rest
    } else if (value >= 0 && Number.isSafeInteger(value)) {
      let rest = value
      while (rest > 0x7f) {
        bytes[at++] = (rest % 128) | 0x80
        rest = Math.floor(rest / 128)
      }
      bytes[at++] = rest
    } else {
      this.#misfit = true
    }
    this.#at = at
  }

  #list(values: readonly number[]): void {
    const length = values.length
    this.#count(length)
    for (let index = 0; index < length; index++) this.#count(values[index]!)
  }

  #text(text: string): void {
    const length = text.length
    this.#ensure(SLACK + length * 2)
    const begin = this.#at
    this.#count(length * 2)
    const bytes = this.#bytes
    let at = this.#at
    for (let index = 0; index < length; index++) {
      const unit = text.charCodeAt(index)
      if (unit > 0xff) {
        // UTF-16 rather than UTF-8, because it also keeps a lone surrogate as it is.
        this.#at = begin
        this.#count(length * 2 + 1)
        this.#at += bytes.write(text, this.#at, 'utf16le')
        return
      }
      bytes[at++] = unit
    }
    this.#at = at
  }

  #ensure(room: number): void {
    if (this.#at + room <= this.#bytes.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + room))
    this.#bytes.copy(grown, 0, 0, this.#at)
    this.#bytes = grown
    this.#view = viewOf(grown)
  }
}

function viewOf(buffer: Buffer): DataView {
  return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
}
