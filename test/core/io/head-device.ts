import type { Task } from '../../../src/core/tasks/task.ts'
import type { IoRig } from './io-rig.ts'

export interface HeadSettings {
  /** Milliseconds that a stream takes to open, that the head takes for a block, and per other stream for a seek. */
  open: number
  block: number
  seek: number
  /** Blocks of a task. */
  blocks: number
  /** Milliseconds by which a task begins late and is seen to end late. */
  delay: () => number
}

interface Stream {
  task: Task
  left: number
  since: number
}

/**
 * A disk as in bench/io/seek-device.mjs: streams take time to open, and one head serves the open ones in turn, block by
 * block. What it gives at a limit shows only when tasks come and go, not when a group of them begins at one time.
 */
export class HeadDevice {
  readonly ended: number[] = []
  /** Which may change while tasks run. */
  settings: HeadSettings
  readonly #rig: IoRig
  readonly #coming: { at: number; act: () => void }[] = []
  readonly #waiting: Stream[] = []
  #isBusy = false
  #last: Stream | null = null

  constructor(rig: IoRig, settings: HeadSettings) {
    this.#rig = rig
    this.settings = settings
  }

  run(enough: () => boolean = () => false): void {
    for (;;) {
      for (const task of this.#rig.go()) this.#begin(task)
      if (enough()) return
      const next = this.#coming.reduce<number>(
        (best, one, i) => (best < 0 || one.at < (this.#coming[best]?.at ?? 0) ? i : best),
        -1,
      )
      const [event] = next < 0 ? [] : this.#coming.splice(next, 1)
      if (!event) return
      this.#rig.now = Math.max(this.#rig.now, event.at)
      event.act()
    }
  }

  #at(at: number, act: () => void): void {
    this.#coming.push({ at, act })
  }

  #begin(task: Task): void {
    const { open, delay, blocks } = this.settings
    const at = this.#rig.now + delay() + open
    this.#at(at, () => {
      this.#waiting.push({ task, left: blocks, since: at })
      this.#serve()
    })
  }

  #serve(): void {
    const stream = this.#isBusy ? undefined : this.#waiting.shift()
    if (!stream) return
    const { block, seek, delay } = this.settings
    this.#isBusy = true
    const time = block + (this.#last === stream ? 0 : seek * this.#waiting.length)
    this.#last = stream
    const { now } = this.#rig
    this.#at(now + time, () => {
      this.#isBusy = false
      if (--stream.left > 0) this.#waiting.push(stream)
      else {
        this.#at(now + time + delay(), () => {
          this.#rig.finish(stream.task, this.#rig.now, 2 ** 17)
          this.ended.push(this.#rig.now)
        })
      }
      this.#serve()
    })
  }
}
