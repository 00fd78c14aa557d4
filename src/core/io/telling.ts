import type { Observer } from '../events.ts'
import type { Device } from './device.ts'
import { explainIo } from './explain.ts'
import type { IoCore } from './io-core.ts'

/** Milliseconds between two events of one device, unless it has become idle. */
const PAUSE = 50
/** Reasons that are told in one decision. */
const MOST_REASONS = 8

/** Tells observers how devices are used, and why those that are first in line wait. */
export class Telling {
  readonly #observer: () => Observer | null
  readonly #toldAt: number[] = []

  constructor(observer: () => Observer | null) {
    this.#observer = observer
  }

  device(device: Device, waiting: number, now: number): void {
    const observer = this.#observer()
    if (!observer) return
    const { index, running } = device
    const last = this.#toldAt[index] ?? -Infinity
    if (running.size > 0 && now - last < PAUSE) return
    this.#toldAt[index] = now
    observer({
      type: 'device',
      at: now,
      device: index,
      read: device.read.used,
      write: device.write.used,
      used: device.used,
      running: running.size,
      waiting,
    })
  }

  /** Each task once: what it waits for first. */
  waiting(io: IoCore, now: number): void {
    const observer = this.#observer()
    if (!observer) return
    let told = 0
    for (const one of io.queue.filled) {
      const task = one.head()
      if (!task?.io || task.io.isTold) continue
      const reason = explainIo(task, io)
      if (reason === null) continue
      task.io.isTold = true
      observer({ type: 'waits', at: now, task: task.id, reason })
      if (++told === MOST_REASONS) return
    }
  }
}
