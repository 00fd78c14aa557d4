import { Deque } from '../../general/deque.ts'
import type { Alarm, Clock } from '../clock.ts'
import { Pipe } from './pipe.ts'
import type { DeviceModel } from './platform.ts'

export type Way = 'read' | 'write'

/**
 * A storage device: one pipe for what is read, one for what is written, or one of time for both. Without a bandwidth
 * it takes no time.
 */
export class ModelDevice {
  readonly model: DeviceModel
  /** The node that it belongs to; null if all share it. */
  readonly node: number | null
  /** Bytes that were asked for; what is under way counts in full. */
  readonly moved: Record<Way, number> = { read: 0, write: 0 }
  readonly #clock: Clock
  readonly #pipes: Record<Way, Pipe | null>
  /** Writes that are not safe yet, and bytes that wait in memory to be written. */
  #writes = 0
  #buffered = 0
  readonly #flushes = new Deque<number>()
  readonly #waiting = new Deque<{ bytes: number; done: Alarm }>()

  constructor(clock: Clock, model: DeviceModel, node: number | null) {
    this.model = model
    this.node = node
    this.#clock = clock
    const arm = model.oneArm ? new Pipe(clock, { rate: 1, ...curveOf(model) }) : null
    const rates = model.actual ?? model
    const pipe = (way: Way): Pipe | null =>
      rates[way] === null ? null : (arm ?? pipeOf(clock, model, way, rates[way]))
    this.#pipes = { read: pipe('read'), write: pipe('write') }
  }

  streams(way: Way): number {
    return this.#pipes[way]?.streams ?? 0
  }

  /** Bytes per second that go through now. */
  flow(way: Way): number {
    return ((this.#pipes[way]?.flow ?? 0) * 1000) / this.#workOf(way, 1)
  }

  /** Milliseconds during which something went through. */
  busy(way: Way): number {
    return this.#pipes[way]?.busy ?? 0
  }

  transfer(way: Way, bytes: number, done: Alarm): void {
    this.moved[way] += bytes
    const { latency = 0 } = this.model
    if (latency > 0) this.#clock.after(latency, now => this.#pass(way, bytes, done, now))
    else this.#pass(way, bytes, done, this.#clock.now)
  }

  #pass(way: Way, bytes: number, done: Alarm, now: number): void {
    const pipe = this.#pipes[way]
    if (!pipe) return done.ring(now)
    const work = this.#workOf(way, bytes)
    if (way === 'read') return pipe.push(work, done)
    if (this.model.buffer) return this.#buffer(pipe, bytes, done)
    if (!this.model.sync) return pipe.push(work, done)
    this.#writes++
    pipe.push(work, { ring: () => this.#clock.after(this.#syncTime(), then => this.#safe(done, then)) })
  }

  /** Goes on as fast as one stream can while there is room in memory, else when room has been made. */
  #buffer(pipe: Pipe, bytes: number, done: Alarm): void {
    this.#waiting.push({ bytes, done })
    if (this.#waiting.size === 1) this.#admit(pipe)
  }

  #admit(pipe: Pipe): void {
    const { buffer = 0, actual = this.model } = this.model
    const rate = streamOf(this.model, 'write') ?? actual.write ?? Infinity
    for (;;) {
      const next = this.#waiting.peek()
      if (!next || (this.#buffered > 0 && this.#buffered + next.bytes > buffer)) return
      this.#waiting.shift()
      this.#buffered += next.bytes
      this.#flushes.push(next.bytes)
      if (this.#flushes.size === 1) this.#flush(pipe)
      this.#clock.at(this.#clock.now + (next.bytes / rate) * 1000, next.done)
    }
  }

  /** What is in memory is written file by file. */
  #flush(pipe: Pipe): void {
    const bytes = this.#flushes.peek()
    if (bytes === undefined) return
    pipe.push(this.#workOf('write', bytes), {
      ring: () => {
        this.#flushes.shift()
        this.#buffered -= bytes
        this.#flush(pipe)
        this.#admit(pipe)
      },
    })
  }

  /** The work of a pipe for these bytes: time where there is one arm, else bytes. */
  #workOf(way: Way, bytes: number): number {
    const { oneArm, actual = this.model } = this.model
    const rate = actual[way]
    return oneArm && rate !== null ? (bytes / rate) * 1000 : bytes
  }

  #syncTime(): number {
    const { sync = 0, knee = 1 } = this.model
    return sync * (this.#writes / knee) ** 3
  }

  #safe(done: Alarm, now: number): void {
    this.#writes--
    done.ring(now)
  }
}

function curveOf({ knee, falloff }: DeviceModel): { knee?: number; falloff?: number } {
  return { ...(knee === undefined ? {} : { knee }), ...(falloff === undefined ? {} : { falloff }) }
}

const streamOf = ({ stream, streamWrite }: DeviceModel, way: Way): number | undefined =>
  way === 'write' ? (streamWrite ?? stream) : stream

function pipeOf(clock: Clock, model: DeviceModel, way: Way, bandwidth: number | null): Pipe | null {
  if (bandwidth === null) return null
  const stream = streamOf(model, way)
  return new Pipe(clock, {
    rate: bandwidth / 1000,
    ...(stream === undefined ? {} : { stream: stream / 1000 }),
    ...curveOf(model),
  })
}
