import type { Task } from '../../../src/core/tasks/task.ts'
import type { IoRig } from './io-rig.ts'

export interface SliceSettings {
  /** MB/s of the throttle. */
  rate: number
  /** Milliseconds until a write is on the device, once it is let through. */
  sync: () => number
  /** Bytes of a task. */
  bytes: number
}

const SLICE = 100

/**
 * A throttled disk as block devices of Linux are: what fits into a slice of 100 ms is let through at once, the rest waits
 * for the next. So most tasks are quick and some take a hundred times as long, and few tasks tell nothing of the rate.
 */
export class SliceDevice {
  readonly ended: number[] = []
  readonly #rig: IoRig
  readonly #settings: SliceSettings
  readonly #coming: { at: number; act: () => void }[] = []
  readonly #waiting: Task[] = []
  #left = 0
  #sliceEnds = 0

  constructor(rig: IoRig, settings: SliceSettings) {
    this.#rig = rig
    this.#settings = settings
  }

  run(): void {
    for (;;) {
      for (const task of this.#rig.go()) {
        this.#waiting.push(task)
        this.#letThrough()
      }
      const next = this.#coming.reduce((best, { at }, i, all) => (at < (all[best]?.at ?? 0) ? i : best), 0)
      const [event] = this.#coming.splice(next, 1)
      if (!event) return
      this.#rig.now = Math.max(this.#rig.now, event.at)
      event.act()
    }
  }

  #letThrough(): void {
    const { now } = this.#rig
    const { rate, bytes, sync } = this.#settings
    if (now >= this.#sliceEnds) {
      this.#sliceEnds = (Math.floor(now / SLICE) + 1) * SLICE
      this.#left = Math.min(this.#left, 0) + rate * 1e3 * SLICE
    }
    while (this.#left > 0 && this.#waiting.length > 0) {
      const task = this.#waiting.shift() as Task
      this.#left -= bytes
      this.#coming.push({ at: now + sync(), act: () => this.#end(task) })
    }
    if (this.#waiting.length > 0) {
      this.#coming.push({ at: this.#sliceEnds, act: () => this.#letThrough() })
    }
  }

  #end(task: Task): void {
    this.#rig.finish(task, this.#rig.now, this.#settings.bytes)
    this.ended.push(this.#rig.now)
  }
}
