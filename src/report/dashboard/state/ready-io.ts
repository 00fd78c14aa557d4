import type { Lack } from '../../../core/events.ts'

/**
 * Ready tasks that wait for storage. Runs tell the reason for the first task of each line, and not for a million of them: what
 * was told last of a kind stands for all of it.
 */
export class ReadyIo {
  all = 0
  readonly #kinds = new Map<number, { count: number; lacks: Lack }>()

  add(kind: number, count: 1 | -1): void {
    this.all += count
    this.#of(kind).count += count
  }

  told(kind: number, lacks: Lack): void {
    this.#of(kind).lacks = lacks
  }

  /** Of these, those that lack room and not bandwidth. */
  get forRoom(): number {
    let sum = 0
    for (const { count, lacks } of this.#kinds.values()) if (lacks === 'room') sum += count
    return sum
  }

  #of(kind: number): { count: number; lacks: Lack } {
    let known = this.#kinds.get(kind)
    if (!known) this.#kinds.set(kind, (known = { count: 0, lacks: 'device' }))
    return known
  }
}
