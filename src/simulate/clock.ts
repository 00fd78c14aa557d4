/** Something that happens at a time that is known beforehand. */
export interface Alarm {
  ring(now: number): void
}

/** Children of each place of the heap: few levels, and what is compared lies together in memory. */
const WIDTH = 4

/**
 * Virtual time, in milliseconds. What is due at one time happens in the order in which it was asked for, so
 * that a simulation is the same each time and on each machine. There may be half a million alarms at once: their times are
 * in arrays of numbers, because objects would each have to be fetched to be compared. The alarms themselves stay where they were put,
 * because the collector of garbage is told of each reference that is written.
 */
export class Clock {
  #now = 0
  #order = 0
  /** A heap, in columns: when, in which order it was asked for, and the number of the alarm. */
  #times = new Float64Array(1024)
  #orders = new Float64Array(1024)
  #numbers = new Int32Array(1024).map((_, i) => i)
  readonly #alarms: (Alarm | null)[] = []
  #size = 0
  /** Entries that keep the simulation going; the others have a negative order. */
  #count = 0
  /** Whether those aside are worth waiting for. */
  waitsAside: () => boolean = () => false

  get now(): number {
    return this.#now
  }

  get isIdle(): boolean {
    return this.#count === 0
  }

  /** When the next alarm is due; infinite when there is none. */
  get next(): number {
    return this.#size === 0 ? Infinity : (this.#times[0] as number)
  }

  /** What should have been before is now: time never runs backwards. */
  at(time: number, alarm: Alarm): void {
    this.#count++
    this.#push(Math.max(time, this.#now), ++this.#order, alarm)
  }

  after(delay: number, then: (now: number) => void): void {
    this.at(this.#now + delay, { ring: then })
  }

  /** The same for what happens only if the simulation is still going on then. */
  aside(delay: number, then: (now: number) => void): void {
    this.#push(this.#now + delay, -++this.#order, { ring: then })
  }

  /** Goes to the next time at which something is due, and lets all happen that is due then. */
  step(): boolean {
    if (this.#size === 0 || (this.#count === 0 && !this.waitsAside())) return false
    this.#now = this.#times[0] as number
    while (this.#size > 0 && this.#times[0] === this.#now) {
      if ((this.#orders[0] as number) > 0) this.#count--
      this.#pop().ring(this.#now)
    }
    return true
  }

  #push(time: number, order: number, alarm: Alarm): void {
    if (this.#size === this.#times.length) this.#grow()
    const times = this.#times
    let at = this.#size++
    // Behind the heap are the numbers that no alarm has.
    const number = this.#numbers[at] as number
    this.#alarms[number] = alarm
    while (at > 0) {
      const up = ((at - 1) / WIDTH) | 0
      if ((times[up] as number) < time || (times[up] === time && this.#isBefore(up, order))) break
      this.#copy(up, at)
      at = up
    }
    this.#put(at, time, order, number)
  }

  #pop(): Alarm {
    const free = this.#numbers[0] as number
    const first = this.#alarms[free] as Alarm
    this.#alarms[free] = null
    const times = this.#times
    const last = --this.#size
    const time = times[last] as number
    const order = this.#orders[last] as number
    const number = this.#numbers[last] as number
    let at = 0
    for (;;) {
      const begin = at * WIDTH + 1
      if (begin >= last) break
      let least = begin
      const end = Math.min(begin + WIDTH, last)
      for (let i = begin + 1; i < end; i++) {
        const isLess = (times[i] as number) < (times[least] as number)
        if (isLess || (times[i] === times[least] && this.#isBefore(i, this.#orders[least] as number)))
          least = i
      }
      if (time < (times[least] as number) || (time === times[least] && !this.#isBefore(least, order))) break
      this.#copy(least, at)
      at = least
    }
    if (last > 0) this.#put(at, time, order, number)
    this.#numbers[last] = free
    return first
  }

  #isBefore(place: number, order: number): boolean {
    return Math.abs(this.#orders[place] as number) < Math.abs(order)
  }

  #copy(from: number, to: number): void {
    this.#times[to] = this.#times[from] as number
    this.#orders[to] = this.#orders[from] as number
    this.#numbers[to] = this.#numbers[from] as number
  }

  #put(place: number, time: number, order: number, number: number): void {
    this.#times[place] = time
    this.#orders[place] = order
    this.#numbers[place] = number
  }

  #grow(): void {
    const larger = (from: Float64Array): Float64Array<ArrayBuffer> => {
      const to = new Float64Array(2 * from.length)
      to.set(from)
      return to
    }
    this.#times = larger(this.#times)
    this.#orders = larger(this.#orders)
    const known = this.#numbers
    this.#numbers = new Int32Array(2 * known.length).map((_, i) => known[i] ?? i)
  }
}
