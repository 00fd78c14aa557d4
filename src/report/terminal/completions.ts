import { formatDuration } from '../format.ts'
import type { Paint } from './paint.ts'
import { withLabel } from '../label.ts'
import { clean, elide, width } from '../text.ts'

export type CompletionState = 'ok' | 'kept' | 'up to date' | 'failed' | 'cancelled' | 'ignored' | 'retry'

export interface Completion {
  state: CompletionState
  name: string
  task: number
  /** What tells it from others of its kind; it may be nothing. */
  label: string
  /** How long the attempt took; null if it never started. */
  took: number | null
  detail?: string
}

const PER_SECOND = 20
const WINDOW_MS = 1000
const MIN_NAME = 8
const MAX_LABEL = 40

interface Tally {
  state: CompletionState
  name: string
  count: number
  tookSum: number
  tookCount: number
}

/**
 * A line per task that ends. Above 20 per second they cannot be read, and a million would drown everything
 * else, so they are then counted: one line per second for each state and kind, until it is calm again.
 */
export class Completions {
  readonly #print: (line: string) => void
  readonly #paint: Paint
  readonly #columns: () => number
  readonly #now: () => number
  readonly #progress: () => string
  readonly #tallies = new Map<string, Tally>()
  #windowAt = -Infinity
  #inWindow = 0
  #isCounting = false
  #isExplained = false

  constructor(options: {
    print: (line: string) => void
    paint: Paint
    columns: () => number
    now: () => number
    /** `[done/total]`, as of now. */
    progress: () => string
  }) {
    this.#print = options.print
    this.#paint = options.paint
    this.#columns = options.columns
    this.#now = options.now
    this.#progress = options.progress
  }

  add(completion: Completion): void {
    this.tick()
    this.#inWindow++
    if (this.#inWindow > PER_SECOND && !this.#isCounting) {
      this.#isCounting = true
      if (!this.#isExplained) {
        this.#isExplained = true
        this.#print(
          this.#paint.dim(
            `more than ${PER_SECOND} tasks end per second: they are counted, a line per second and kind`,
          ),
        )
      }
    }
    if (this.#isCounting) this.#tally(completion)
    else this.#print(this.#line(completion))
  }

  /** To be called about once a second, so that counts appear also when nothing more ends. */
  tick(): void {
    const now = this.#now()
    if (now - this.#windowAt < WINDOW_MS) return
    this.flush()
    if (this.#inWindow <= PER_SECOND) this.#isCounting = false
    this.#windowAt = now
    this.#inWindow = 0
  }

  flush(): void {
    for (const { state, name, count, tookSum, tookCount } of this.#tallies.values()) {
      const mean = tookCount > 0 ? ` ${formatDuration(tookSum / tookCount)} each` : ''
      const before = `${this.#progress()} ${this.#stateWord(state)} `
      const after = ` ${this.#paint.times}${count}${mean}`
      this.#print(before + this.#fit(name, before + after) + after)
    }
    this.#tallies.clear()
  }

  #tally({ state, name, took }: Completion): void {
    const key = `${state} ${name}`
    let tally = this.#tallies.get(key)
    if (tally === undefined) {
      tally = { state, name, count: 0, tookSum: 0, tookCount: 0 }
      this.#tallies.set(key, tally)
    }
    tally.count++
    if (took === null) return
    tally.tookSum += took
    tally.tookCount++
  }

  #line({ state, name, task, label, took, detail }: Completion): string {
    const before = `${this.#progress()} ${this.#stateWord(state)} `
    const which = withLabel(`#${task}`, elide(clean(label), MAX_LABEL, this.#paint.ellipsis))
    const after = `${which}${took === null ? '' : ` ${formatDuration(took)}`}`
    const shown = this.#fit(name, before + after)
    const line = before + shown + after
    if (detail === undefined) return line
    // The detail is a sentence: it stands before the time, and gives way to the name.
    const room = this.#columns() - width(line) - 3
    const words = room >= MIN_NAME ? ` (${elide(clean(detail), room, this.#paint.ellipsis)})` : ''
    return `${before}${shown}${which}${words}${took === null ? '' : ` ${formatDuration(took)}`}`
  }

  #fit(name: string, others: string): string {
    const room = Math.max(MIN_NAME, this.#columns() - width(others))
    return elide(clean(name), room, this.#paint.ellipsis)
  }

  #stateWord(state: CompletionState): string {
    switch (state) {
      case 'ok':
        return this.#paint.good(state)
      case 'kept':
      case 'up to date':
        return this.#paint.dim(state)
      case 'failed':
        return this.#paint.bad(state)
      case 'cancelled':
      case 'ignored':
      case 'retry':
        return this.#paint.warn(state)
    }
  }
}
