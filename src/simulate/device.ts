import type { Alarm, Clock } from './clock.ts'
import { Pipe } from './pipe.ts'

export type Way = 'read' | 'write'

export interface DeviceModel {
  name: string
  /** Bytes per second. */
  read: number
  write: number
  /** Bytes per second that one stream can reach at most. @default all */
  stream?: number | undefined
  knee?: number | undefined
  falloff?: number | undefined
  /** Milliseconds before each transfer. @default 0 */
  latency?: number | undefined
  /** Bytes. @default unlimited */
  capacity?: number | undefined
}

/**
 * A storage device. Reads and writes share it: its pipe carries the time that it works, of which a byte that is
 * written takes more or less than one that is read.
 */
export class Device {
  readonly name: string
  readonly model: DeviceModel
  readonly #clock: Clock
  readonly #pipe: Pipe
  used = 0
  /** Bytes that were asked for; what is under way counts in full. */
  readonly moved: Record<Way, number> = { read: 0, write: 0 }

  constructor(clock: Clock, model: DeviceModel) {
    this.name = model.name
    this.model = model
    this.#clock = clock
    const { stream, write, knee, falloff } = model
    this.#pipe = new Pipe(clock, {
      rate: 1,
      ...(stream === undefined ? {} : { stream: Math.min(1, stream / write) }),
      ...(knee === undefined ? {} : { knee }),
      ...(falloff === undefined ? {} : { falloff }),
    })
  }

  get streams(): number {
    return this.#pipe.streams
  }

  /** The share of its time for which it works now: never above 1. */
  get load(): number {
    return this.#pipe.flow
  }

  get busy(): number {
    return this.#pipe.busy
  }

  transfer(way: Way, bytes: number, done: Alarm): void {
    this.moved[way] += bytes
    const { latency = 0 } = this.model
    const amount = (bytes / this.model[way]) * 1000
    if (latency > 0) this.#clock.after(latency, () => this.#pipe.push(amount, done))
    else this.#pipe.push(amount, done)
  }
}
