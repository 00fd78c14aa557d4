import type { Observer } from '../events.ts'
import type { Task } from '../task.ts'
import type { Bound } from './bound.ts'
import type { Device } from './device.ts'
import { explainIo } from './explain.ts'
import type { IoCore } from './io-core.ts'
import type { IoNode } from './io-node.ts'
import type { IoClass } from './io-queue.ts'
import { bytesText } from './words.ts'

/** Milliseconds between two events of one device, unless it has become idle. */
const PAUSE = 50
/** Tasks that are looked at in one decision, so that its cost stays the same however many wait. */
const MOST_LOOKED_AT = 8

/** Tells observers how devices are used, and why those that are first in line wait. */
export class Telling {
  readonly #observer: () => Observer | null
  readonly #toldAt: number[] = []
  #stuck: Task | null = null

  constructor(observer: () => Observer | null) {
    this.#observer = observer
  }

  device(device: Device, waiting: (device: Device) => number, now: number): void {
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
      waiting: waiting(device),
    })
  }

  /** The program cannot go on by itself: it may still remove data, but a person should know. */
  stuck(bound: Bound, nodes: readonly IoNode[], now: number): void {
    const observer = this.#observer()
    const task = bound.first()
    if (!observer || !task || task.state !== 'ready' || this.#stuck === task) return
    if (nodes.some(({ node, taken }) => taken > 0 || node.freeLanes < node.cpus)) return
    if (!bound.isStuckWith(task)) return
    this.#stuck = task
    const text = `${task.name} cannot start: temporary data take ${bytesText(bound.alive)} of ${bytesText(bound.limit)}, and no task that runs or could start will free any; raise maxIntermediate`
    observer({ type: 'note', at: now, level: 'warning', text })
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
      if (!task?.io || task.io.isTold) continue
      const reason = explainIo(task, io)
      if (reason === null) {
        unexplained.push(one)
        continue
      }
      task.io.isTold = true
      observer({ type: 'waits', at: now, task: task.id, reason })
    }
    // They are asked again when the others have had their turn.
    for (const one of unexplained) changed.add(one)
  }
}
