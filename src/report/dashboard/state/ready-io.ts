/** As `explainIo` says it of one device. */
const LACKS_ROOM = /^temporary data take | free and it needs /

/**
 * Ready tasks that wait for storage. Runs tell the reason for the first task of each line, and not for a million of them: what
 * was told last of a kind stands for all of it.
 */
export class ReadyIo {
  all = 0
  readonly #kinds = new Map<number, { count: number; isForRoom: boolean }>()

  add(kind: number, count: 1 | -1): void {
    this.all += count
    this.#of(kind).count += count
  }

  told(kind: number, reason: string): void {
    this.#of(kind).isForRoom = reason.split('; ').every(part => LACKS_ROOM.test(part))
  }

  /** Of these, those that lack room and not bandwidth. */
  get forRoom(): number {
    let sum = 0
    for (const { count, isForRoom } of this.#kinds.values()) if (isForRoom) sum += count
    return sum
  }

  #of(kind: number): { count: number; isForRoom: boolean } {
    let known = this.#kinds.get(kind)
    if (!known) this.#kinds.set(kind, (known = { count: 0, isForRoom: false }))
    return known
  }
}
