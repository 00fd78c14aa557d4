import { IdTable } from './id-table.ts'
import { countHeld } from './statistics-kind.ts'
import type { KindStatistics } from './statistics-kind.ts'

/** Tasks that wait or are ready. */
export class QueuedTasks {
  readonly #total: KindStatistics
  readonly #kind: (id: number) => KindStatistics
  /** Twice the kind of the task, plus 1 if it is ready, plus 1 because 0 means absent. */
  readonly #packed = new IdTable()

  constructor(total: KindStatistics, kind: (id: number) => KindStatistics) {
    this.#total = total
    this.#kind = kind
  }

  has(task: number): boolean {
    return this.#packed.get(task) !== 0
  }

  kindOf(task: number): KindStatistics | null {
    const packed = this.#packed.get(task)
    return packed === 0 ? null : this.#kind((packed - 1) >> 1)
  }

  add(task: number, kind: KindStatistics, isReady: boolean, now: number): void {
    this.#packed.set(task, kind.kind * 2 + (isReady ? 2 : 1))
    if (isReady) {
      countHeld(kind, now)
      kind.ready++
      this.#total.ready++
    } else {
      kind.waiting++
      this.#total.waiting++
    }
  }

  becomeReady(task: number, now: number): void {
    if (this.#packed.get(task) % 2 === 1) this.add(task, this.remove(task, now)!, true, now)
  }

  /** Returns its kind. */
  remove(task: number, now: number): KindStatistics | null {
    const packed = this.#packed.get(task)
    if (packed === 0) return null
    this.#packed.delete(task)
    const kind = this.#kind((packed - 1) >> 1)
    if (packed % 2 === 0) {
      countHeld(kind, now)
      kind.ready--
      this.#total.ready--
    } else {
      kind.waiting--
      this.#total.waiting--
    }
    return kind
  }
}
