import { Heap } from '../general/heap.ts'

/** Something that happens at a time that is known beforehand. */
export interface Alarm {
  ring(now: number): void
}

interface Entry {
  readonly at: number
  readonly order: number
  readonly alarm: Alarm
}

const before = (a: Entry, b: Entry): boolean => (a.at === b.at ? a.order < b.order : a.at < b.at)

/**
 * Virtual time, in milliseconds. What is due at one time happens in the order in which it was asked for, so
 * that a simulation is the same each time and on each machine.
 */
export class Clock {
  #now = 0
  #order = 0
  readonly #entries = new Heap<Entry>(before)

  get now(): number {
    return this.#now
  }

  get isIdle(): boolean {
    return this.#entries.size === 0
  }

  /** When the next alarm is due; infinite when there is none. */
  get next(): number {
    return this.#entries.peek()?.at ?? Infinity
  }

  /** What should have been before is now: time never runs backwards. */
  at(time: number, alarm: Alarm): void {
    this.#entries.push({ at: Math.max(time, this.#now), order: ++this.#order, alarm })
  }

  after(delay: number, then: (now: number) => void): void {
    this.at(this.#now + delay, { ring: then })
  }

  /** Goes to the next time at which something is due, and lets all happen that is due then. */
  step(): boolean {
    const first = this.#entries.peek()
    if (!first) return false
    this.#now = first.at
    for (let entry = this.#entries.peek(); entry?.at === this.#now; entry = this.#entries.peek()) {
      this.#entries.pop()
      entry.alarm.ring(this.#now)
    }
    return true
  }
}
