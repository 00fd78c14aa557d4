import type { Alarm, Clock } from './clock.ts'
import { Pipe } from './pipe.ts'
import type { DeviceModel } from './platform.ts'

export type Way = 'read' | 'write'

/** A storage device: one pipe for what is read, one for what is written. Without a bandwidth it takes no time. */
export class ModelDevice {
  readonly model: DeviceModel
  /** The node that it belongs to; null for one that all share. */
  readonly node: number | null
  /** Bytes that were asked for; what is under way counts in full. */
  readonly moved: Record<Way, number> = { read: 0, write: 0 }
  readonly #clock: Clock
  readonly #pipes: Record<Way, Pipe | null>

  constructor(clock: Clock, model: DeviceModel, node: number | null) {
    this.model = model
    this.node = node
    this.#clock = clock
    const { read, write } = model.actual ?? model
    this.#pipes = { read: pipeOf(clock, model, read), write: pipeOf(clock, model, write) }
  }

  streams(way: Way): number {
    return this.#pipes[way]?.streams ?? 0
  }

  /** Bytes per second that go through now. */
  flow(way: Way): number {
    return (this.#pipes[way]?.flow ?? 0) * 1000
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
    if (pipe) pipe.push(bytes, done)
    else done.ring(now)
  }
}

function pipeOf(clock: Clock, { stream, knee, falloff }: DeviceModel, bandwidth: number | null): Pipe | null {
  if (bandwidth === null) return null
  return new Pipe(clock, {
    rate: bandwidth / 1000,
    ...(stream === undefined ? {} : { stream: stream / 1000 }),
    ...(knee === undefined ? {} : { knee }),
    ...(falloff === undefined ? {} : { falloff }),
  })
}
