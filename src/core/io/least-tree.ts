/** What a place can give to one task. */
export interface Amounts {
  read: number
  write: number
  room: number
  /** Tasks, where their number is limited. */
  tasks: number
}

/**
 * Finds the place with the least key that has enough of everything, without looking at all of them: over the places lies a tree
 * that knows the least key and the most of each amount below. Where places are alike, looking and telling of a change cost the
 * logarithm of their number.
 */
export class LeastTree {
  readonly #leaves: number
  readonly #keys: Float64Array
  readonly #amounts: Record<keyof Amounts, Float64Array>
  /** Of the search that is under way. */
  #wish: Amounts = { read: 0, write: 0, room: 0, tasks: 0 }
  #accepts: (place: number) => boolean = () => false
  #best = -1
  #bestKey = Infinity

  constructor(count: number) {
    let leaves = 1
    while (leaves < count) leaves *= 2
    this.#leaves = leaves
    this.#keys = new Float64Array(2 * leaves).fill(Infinity)
    const nothing = (): Float64Array => new Float64Array(2 * leaves).fill(-Infinity)
    this.#amounts = { read: nothing(), write: nothing(), room: nothing(), tasks: nothing() }
  }

  /** To be called whenever a place has changed; an infinite key takes it out. */
  update(place: number, key: number, { read, write, room, tasks }: Amounts): void {
    const keys = this.#keys
    const amounts = this.#amounts
    let at = this.#leaves + place
    keys[at] = key
    amounts.read[at] = read
    amounts.write[at] = write
    amounts.room[at] = room
    amounts.tasks[at] = tasks
    for (at >>= 1; at >= 1; at >>= 1) {
      const [left, right] = [2 * at, 2 * at + 1]
      keys[at] = Math.min(keys[left] as number, keys[right] as number)
      for (const of of [amounts.read, amounts.write, amounts.room, amounts.tasks]) {
        of[at] = Math.max(of[left] as number, of[right] as number)
      }
    }
  }

  /** The place with the least key, among equals the first, that has so much and is accepted; -1 if there is none. */
  least(wish: Amounts, accepts: (place: number) => boolean): number {
    this.#wish = wish
    this.#accepts = accepts
    this.#best = -1
    this.#bestKey = Infinity
    this.#look(1, 0, this.#leaves)
    return this.#best
  }

  #look(at: number, low: number, size: number): void {
    const keys = this.#keys
    const key = keys[at] as number
    if (key > this.#bestKey || (key === this.#bestKey && (key === Infinity || low > this.#best))) return
    const { read, write, room, tasks } = this.#amounts
    const wish = this.#wish
    if ((read[at] as number) < wish.read || (write[at] as number) < wish.write) return
    if ((room[at] as number) < wish.room || (tasks[at] as number) < wish.tasks) return
    if (size === 1) {
      if (!this.#accepts(low)) return
      this.#best = low
      this.#bestKey = key
      return
    }
    const half = size / 2
    const [left, right] = [2 * at, 2 * at + 1]
    if ((keys[right] as number) < (keys[left] as number)) {
      this.#look(right, low + half, half)
      this.#look(left, low, half)
    } else {
      this.#look(left, low, half)
      this.#look(right, low + half, half)
    }
  }
}
