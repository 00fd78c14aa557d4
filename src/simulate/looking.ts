import type { Looks } from '../core/io/looks.ts'
import type { Task } from '../core/tasks/task.ts'
import type { Clock } from './clock.ts'
import type { Stores } from './machine/stores.ts'

/** Looks at what the first tasks of a kind have written so far, as the runtime does by the sizes of their files. */
export class Looking {
  readonly #clock: Clock
  readonly #looks: Looks
  readonly #stores: Stores
  /** What each has written, and when that was. */
  readonly #written = new Map<Task, { bytes: number; at: number }>()
  #isArmed = false

  constructor(clock: Clock, looks: Looks, stores: Stores) {
    this.#clock = clock
    this.#looks = looks
    this.#stores = stores
  }

  /** Called after each decision. */
  arm(): void {
    if (this.#isArmed || !this.#looks.any) return
    this.#isArmed = true
    this.#clock.aside(Math.max(0, this.#looks.next - this.#clock.now), this.#look)
  }

  readonly #look = (now: number): void => {
    this.#isArmed = false
    const due = this.#looks.due(now)
    for (const task of due) this.#looks.seen(task, this.#bytesOf(task, now), now)
    if (!this.#looks.any) this.#written.clear()
  }

  /** A kind that is looked at has its device for itself: all streams there are equal. */
  #bytesOf(task: Task, now: number): number {
    const device = this.#stores.devices[task.io?.device?.index ?? -1]
    const streams = device?.streams('write') ?? 0
    const rate = device && streams > 0 ? device.flow('write') / streams / 1000 : 0
    const before = this.#written.get(task) ?? { bytes: 0, at: now }
    const bytes = before.bytes + rate * (now - before.at)
    this.#written.set(task, { bytes, at: now })
    return bytes
  }
}
