import type { Observer } from '../events.ts'
import type { Bound } from './bound.ts'
import type { Device } from './device.ts'
import { explainIo } from './explain.ts'
import type { IoCore } from './io-core.ts'
import type { IoClass } from './io-queue.ts'

/** Milliseconds between two events of one device, unless it has become idle. */
const PAUSE = 50
/** Tasks that are looked at in one decision, so that its cost stays the same however many wait. */
const MOST_LOOKED_AT = 8

/** Reports to observers how devices are used, and why the first tasks in line wait. */
export class IoReports {
  readonly #observer: () => Observer | null
  readonly #reportedAt: number[] = []
  #lastAlive = 0
  #aliveReportedAt = -Infinity

  constructor(observer: () => Observer | null) {
    this.#observer = observer
  }

  device(device: Device, waiting: (device: Device) => number, now: number): void {
    const observer = this.#observer()
    if (!observer) return
    const { index, running } = device
    const last = this.#reportedAt[index] ?? -Infinity
    if (running.size > 0 && now - last < PAUSE) return
    this.#reportedAt[index] = now
    observer({
      type: 'device',
      at: now,
      device: index,
      read: device.read.used,
      write: device.write.used,
      used: device.taken,
      running: running.size,
      waiting: waiting(device),
    })
  }

  /** What temporary files take; at most every so often, unless it is nothing. */
  intermediate({ alive, limit }: Bound, now: number): void {
    const observer = this.#observer()
    if (!observer || alive === this.#lastAlive || (alive > 0 && now - this.#aliveReportedAt < PAUSE)) return
    this.#lastAlive = alive
    this.#aliveReportedAt = now
    observer({ type: 'intermediate', at: now, bytes: Math.max(0, Math.round(alive)), limit })
  }

  /** The same for tasks with CPUs that the bound holds back. */
  held(io: IoCore, now: number): void {
    const observer = this.#observer()
    if (!observer) return
    const { computing } = io.standstill
    let looked = 0
    for (const task of computing) {
      if (++looked > MOST_LOOKED_AT) break
      computing.delete(task)
      if (task.state !== 'ready' || !task.io) continue
      // The next decision looks at others first.
      computing.add(task)
      if (task.io.isReported || io.bound?.allows(task) !== false) continue
      const obstacle = explainIo(task, io)
      if (obstacle === null) continue
      task.io.isReported = true
      observer({ type: 'waits', at: now, task: task.id, ...obstacle })
    }
  }

  /** Each task once: what it waits for first. */
  waiting(io: IoCore, now: number): void {
    const observer = this.#observer()
    if (!observer) return
    const { changed } = io.queue
    const unexplained: IoClass[] = []
    let looked = 0
    for (const one of changed) {
      if (++looked > MOST_LOOKED_AT) break
      changed.delete(one)
      const task = one.first
      if (!task?.io || task.io.isReported) continue
      const obstacle = explainIo(task, io)
      if (obstacle === null) {
        unexplained.push(one)
        continue
      }
      task.io.isReported = true
      observer({ type: 'waits', at: now, task: task.id, ...obstacle })
    }
    // They are asked again when the others have had their turn.
    for (const one of unexplained) changed.add(one)
  }
}
