import type { Lack } from '../../../core/events.ts'

interface Kind {
  readonly isIo: boolean
  count: number
  /** What the first of its line lacks. */
  lacks: Lack
  /** Ready tasks of which it was told. */
  readonly told: Set<number>
}

/**
 * Ready tasks that wait for storage. Runs tell the reason for the first task of each line, and not for a million of them: what
 * was told last of a kind stands for all of it.
 */
export class ReadyIo {
  readonly #kinds = new Map<number, Kind>()

  /** `isIo`: tasks of the kind hold no CPU, or ask for a device. */
  add(kind: number, isIo: boolean): void {
    let known = this.#kinds.get(kind)
    if (!known) this.#kinds.set(kind, (known = { isIo, count: 0, lacks: 'device', told: new Set() }))
    known.count++
  }

  /** It is no longer ready. */
  remove(kind: number, task: number): void {
    const known = this.#kinds.get(kind)
    if (!known) return
    known.count--
    known.told.delete(task)
  }

  told(kind: number, task: number, lacks: Lack): void {
    const known = this.#kinds.get(kind)
    if (!known) return
    known.lacks = lacks
    known.told.add(task)
  }

  get all(): number {
    return this.#sum(() => true)
  }

  /** Of these, those that lack room and not bandwidth. */
  get forRoom(): number {
    return this.#sum(lacks => lacks === 'room')
  }

  /** Tasks that hold a CPU lack one, unless something else was told of one of their kind that is still there. */
  #sum(isMeant: (lacks: Lack) => boolean): number {
    let sum = 0
    for (const { isIo, count, lacks, told } of this.#kinds.values())
      if ((isIo || told.size > 0) && isMeant(lacks)) sum += count
    return sum
  }
}
