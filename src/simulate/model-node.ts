import type { Alarm, Clock } from './clock.ts'
import { Device } from './device.ts'
import { PageCache } from './page-cache.ts'
import { Pipe } from './pipe.ts'
import type { NodeModel } from './platform.ts'

/** One node with everything on it that takes time. */
export class ModelNode {
  readonly model: NodeModel
  readonly devices: readonly Device[]
  readonly cache: PageCache
  /** Null when nothing limits them. */
  readonly inward: Pipe | null
  readonly outward: Pipe | null
  readonly #clock: Clock
  readonly #speed: number
  /** Null when each task has its CPUs for itself. */
  readonly #cpu: Pipe | null

  constructor(clock: Clock, model: NodeModel) {
    this.model = model
    this.#clock = clock
    this.#speed = model.speed ?? 1
    this.devices = (model.storage ?? []).map(device => new Device(clock, device))
    this.cache = new PageCache(model.cache ?? 0)
    const link = model.link === undefined ? null : model.link / 1000
    this.inward = link === null ? null : new Pipe(clock, { rate: link })
    this.outward = link === null ? null : new Pipe(clock, { rate: link })
    const cores = model.cores ?? model.cpus
    this.#cpu = cores < model.cpus ? new Pipe(clock, { rate: cores, stream: 1 }) : null
  }

  /** `milliseconds` is what it takes when it has `cpus` of speed 1 for itself. */
  compute(milliseconds: number, cpus: number, done: Alarm): void {
    const alone = milliseconds / this.#speed
    if (this.#cpu) this.#cpu.push(alone * cpus, done, cpus)
    else this.#clock.at(this.#clock.now + alone, done)
  }

  /** Milliseconds to read so much from its cache. */
  cacheTime(bytes: number): number {
    const { cacheRate } = this.model
    return cacheRate === undefined ? 0 : (bytes / cacheRate) * 1000
  }

  /** CPUs that compute now, when they are shared; never more than there are. */
  get load(): number {
    return this.#cpu?.flow ?? 0
  }
}
