import type { Move } from '../../core/io/task-io.ts'
import type { Clock } from '../clock.ts'
import type { ModelDevice } from './device.ts'
import type { Stores } from './stores.ts'

/** A move is made in this number of parts, of sizes between these, each at the rate allowed when it begins. */
const PARTS = 16
const SMALLEST = 1e6
const LARGEST = 64e6

interface Moving {
  left: number
  /** A part is on its way. */
  busy: boolean
}

/** Moves data between devices, no faster than the core allows. */
export class Movers {
  readonly #clock: Clock
  readonly #stores: Stores
  readonly #arrived: (move: Move) => void
  readonly #moving = new Map<Move, Moving>()

  constructor(clock: Clock, stores: Stores, arrived: (move: Move) => void) {
    this.#clock = clock
    this.#stores = stores
    this.#arrived = arrived
  }

  begin(move: Move): void {
    this.#moving.set(move, { left: move.bytes, busy: false })
    this.pace(move)
  }

  /** Its rate has changed: if it paused, it goes on. What is on its way keeps its pace. */
  pace(move: Move): void {
    const moving = this.#moving.get(move)
    if (!moving || moving.busy || move.rate <= 0) return
    const from = this.#stores.devices[move.from.index] as ModelDevice
    const to = this.#stores.devices[move.to.index] as ModelDevice
    const part = Math.min(Math.max(SMALLEST, Math.min(LARGEST, move.bytes / PARTS)), moving.left)
    const soonest = this.#clock.now + (part / move.rate) * 1000
    moving.busy = true
    const next = { ring: (): void => this.#partArrived(move, moving, part) }
    this.#stores.copy(from, to, part, { ring: now => this.#clock.at(Math.max(now, soonest), next) })
  }

  #partArrived(move: Move, moving: Moving, part: number): void {
    moving.busy = false
    moving.left -= part
    if (moving.left > 0) return this.pace(move)
    this.#moving.delete(move)
    this.#stores.put(move.version.id, this.#stores.devices[move.to.index] as ModelDevice)
    this.#arrived(move)
  }
}
