import { Heap } from '../../general/heap.ts'
import type { Alarm, Clock } from '../clock.ts'

export interface PipeOptions {
  /** Units of work per millisecond, all streams together. */
  rate: number
  /** The most that one stream of weight 1 can take of it. @default all */
  stream?: number
  /** Number of concurrent streams up to which the full rate holds. @default any number */
  knee?: number
  /** How much is lost beyond the knee: with twice as many streams the rate is divided by 1 + falloff. @default 0 */
  falloff?: number
}

interface Stream {
  /** Served work per weight at which it is through. */
  readonly finish: number
  readonly order: number
  readonly weight: number
  readonly done: Alarm
}

/** Milliseconds: times this close are equal (below a nanosecond). */
const NOTHING = 1e-6

const before = (a: Stream, b: Stream): boolean =>
  a.finish === b.finish ? a.order < b.order : a.finish < b.finish

/**
 * Something that many use at once and that is divided fairly among them: a disk, a link, the CPUs of a node.
 *
 * All streams progress alike, so one number says how far all of them are: what each has been served since the
 * pipe was last idle. A stream is through when that number reaches its own amount above what it was at the
 * start. So a change costs the logarithm of the number of streams, and never a look at all of them.
 */
export class Pipe implements Alarm {
  readonly #clock: Clock
  readonly #rate: number
  readonly #most: number
  readonly #knee: number
  readonly #falloff: number
  readonly #streams = new Heap<Stream>(before)
  #weight = 0
  #order = 0
  #served = 0
  #since = 0
  #alarm = Infinity
  /** Work that was asked for, and that was done; equal when the pipe is idle. */
  taken = 0
  given = 0
  /** Milliseconds during which there was something to do. */
  busy = 0

  constructor(clock: Clock, { rate, stream, knee, falloff }: PipeOptions) {
    this.#clock = clock
    this.#rate = rate
    this.#most = stream ?? rate
    this.#knee = knee ?? Infinity
    this.#falloff = falloff ?? 0
  }

  get streams(): number {
    return this.#streams.size
  }

  /** Units per millisecond that go through now. */
  get flow(): number {
    return this.#share() * this.#weight
  }

  /** Total units per millisecond with this number of streams. */
  capacity(streams: number): number {
    const excess = streams / this.#knee - 1
    return excess > 0 ? this.#rate / (1 + this.#falloff * excess) : this.#rate
  }

  push(amount: number, done: Alarm, weight = 1): void {
    this.#advance()
    this.taken += amount
    this.#weight += weight
    const finish = this.#served + amount / weight
    this.#streams.push({ finish, order: ++this.#order, weight, done })
    this.#arm()
  }

  ring(now: number): void {
    if (now >= this.#alarm) this.#alarm = Infinity
    this.#advance()
    const share = this.#share()
    const ended: Stream[] = []
    for (let top = this.#streams.peek(); top; top = this.#streams.peek()) {
      const left = (top.finish - this.#served) / share
      // Late in a long simulation the clock itself cannot tell such times apart.
      if (left > NOTHING && now + left > now) break
      this.#streams.pop()
      this.#weight -= top.weight
      ended.push(top)
    }
    if (this.#streams.size === 0) {
      this.#served = 0
      this.#weight = 0
      this.given = this.taken
    } else this.#arm()
    for (const { done } of ended) done.ring(now)
  }

  #share(): number {
    const weight = this.#weight
    return weight === 0 ? 0 : Math.min(this.#most, this.capacity(weight) / weight)
  }

  #advance(): void {
    const { now } = this.#clock
    const passed = now - this.#since
    this.#since = now
    if (passed === 0 || this.#streams.size === 0) return
    const share = this.#share()
    this.#served += share * passed
    this.given += share * this.#weight * passed
    this.busy += passed
  }

  /** An alarm that comes too early only looks again; one that would come too late is doubled. */
  #arm(): void {
    const top = this.#streams.peek() as Stream
    const at = this.#clock.now + Math.max(0, (top.finish - this.#served) / this.#share())
    if (at >= this.#alarm) return
    this.#alarm = at
    this.#clock.at(at, this)
  }
}
