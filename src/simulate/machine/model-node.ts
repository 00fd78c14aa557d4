import type { Alarm, Clock } from '../clock.ts'
import { PageCache } from './page-cache.ts'
import { Pipe } from './pipe.ts'
import type { NodeModel } from './platform.ts'

/** One node: its CPUs, its memory of what was read and written, and its links to the others. */
export class ModelNode {
  readonly index: number
  readonly cache: PageCache
  /** Null when nothing limits them. */
  readonly inward: Pipe | null
  readonly outward: Pipe | null
  readonly #clock: Clock
  readonly #model: NodeModel
  readonly #speed: number
  /** Null when each task has its CPUs for itself. */
  readonly #cpu: Pipe | null

  constructor(clock: Clock, index: number, model: NodeModel) {
    this.index = index
    this.#model = model
    this.#clock = clock
    this.#speed = model.speed ?? 1
    this.cache = new PageCache(model.cache ?? 0)
    const { link, cpus, cores = cpus } = model
    this.inward = link === undefined ? null : new Pipe(clock, { rate: link / 1000 })
    this.outward = link === undefined ? null : new Pipe(clock, { rate: link / 1000 })
    this.#cpu = cores < cpus ? new Pipe(clock, { rate: cores, stream: 1 }) : null
  }

  /** `milliseconds` is what it takes when it has `cpus` of speed 1 for itself. */
  compute(milliseconds: number, cpus: number, done: Alarm): void {
    const alone = this.alone(milliseconds)
    if (this.#cpu && cpus > 0) this.#cpu.push(alone * cpus, done, cpus)
    else this.#clock.at(this.#clock.now + alone, done)
  }

  /** The same where it need not share its CPUs. */
  alone(milliseconds: number): number {
    return milliseconds / this.#speed
  }

  /** Milliseconds to read so much from its cache. */
  cacheTime(bytes: number): number {
    const { cacheRate } = this.#model
    return cacheRate === undefined ? 0 : (bytes / cacheRate) * 1000
  }

  /** CPUs of speed 1 that it is worth. */
  get capacity(): number {
    const { cpus, cores = cpus } = this.#model
    return Math.min(cores, cpus) * this.#speed
  }

  /** CPUs that compute now, when they are shared; never more than there are. */
  get load(): number {
    return this.#cpu?.flow ?? 0
  }
}
