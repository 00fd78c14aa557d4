import type { Engine } from '../core/engine.ts'
import type { Loop } from './loop.ts'

/** Milliseconds for which nothing may happen where the program waits for tasks, and where it does something of its own. */
const AWAITED = 100
const NOT_AWAITED = 1000
/** The bound does not hold for this program: the more often that was seen, the more tasks go on at one time. */
const MOST_AT_ONCE = 64

/**
 * Sees that tasks wait for room which nothing will free, and lets some of them go. The program may free room itself, in the
 * moment after a wait has ended: so it is given a while.
 */
export class StandstillWatch {
  readonly #engine: Pick<Engine, 'io' | 'taskCount' | 'control'>
  readonly #loop: Pick<Loop, 'decide' | 'isAwaited'>
  readonly #now: () => number
  #timer: NodeJS.Timeout | null = null
  #tasks = 0
  #count = 1

  constructor(
    engine: Pick<Engine, 'io' | 'taskCount' | 'control'>,
    loop: Pick<Loop, 'decide' | 'isAwaited'>,
    now: () => number,
  ) {
    this.#engine = engine
    this.#loop = loop
    this.#now = now
  }

  /** Comes after each decision. */
  look(isOver: boolean): void {
    const engine = this.#engine
    // What a person paused does not stand still by itself.
    if (engine.control.isPaused || !engine.io.standstill.isThere) return this.#forget()
    if (this.#timer && this.#tasks === engine.taskCount) return
    this.#forget()
    this.#tasks = engine.taskCount
    const delay = isOver || this.#loop.isAwaited ? AWAITED : NOT_AWAITED
    this.#timer = setTimeout(() => this.#letSomeGo(), delay)
  }

  #letSomeGo(): void {
    this.#timer = null
    const engine = this.#engine
    if (!engine.io.standstill.isThere) return
    for (let left = this.#count; left > 0; left--) engine.io.standstill.letOneGo(this.#now())
    this.#count = Math.min(2 * this.#count, MOST_AT_ONCE)
    this.#loop.decide()
  }

  #forget(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
  }
}
