import { MillraceError } from '../../core/errors.ts'
import { nearest } from '../../general/nearest.ts'
import { parseDuration } from '../../general/units.ts'

/** Which results are kept, and when they are written. */
export interface CheckpointPolicy {
  /** long: those of tasks that took long, without being asked; auto: those that took longer than keeping them; tasks: those with `cache: true`; groups: those of groups with `checkpoint`. */
  readonly what: 'auto' | 'all' | 'tasks' | 'groups' | 'long'
  /** Results are written and synced after this many tasks; 0: at once. */
  readonly tasks: number
  /** Results are written and synced at this interval, in milliseconds; 0: at once. */
  readonly every: number
}

const NAMES = ['auto', 'all', 'tasks', 'groups', 'off'] as const

/** The default keeps results: a run of a night must not be lost because an option was forgotten. */
export const UNASKED: CheckpointPolicy = { what: 'long', tasks: 0, every: 0 }

/** What `checkpoint` says; null for off. */
export function parseCheckpoint(text: string): CheckpointPolicy | null {
  if (text === 'off') return null
  if (text === 'auto' || text === 'all' || text === 'tasks' || text === 'groups')
    return { what: text, tasks: 0, every: 0 }
  if (/^[1-9]\d*$/.test(text)) return { what: 'auto', tasks: Number(text), every: 0 }
  const every = /^\d/.test(text) ? parseDuration(text) : null
  if (every !== null && every > 0) return { what: 'auto', tasks: 0, every }
  const close = nearest(text, NAMES)
  throw new MillraceError(
    'MR_OPTION',
    `checkpoint cannot be '${text}'${close ? `; did you mean '${close}'?` : ''}`,
    { hint: 'It is auto, all, tasks, groups or off, a number of tasks (100), or a time (30s).' },
  )
}

/** Milliseconds that a result is worth keeping for: as many times its cost. */
const WORTH = 4
/** What keeping a small result, and finding it again, takes at least; milliseconds. */
const LEAST_COST = 0.02
/** Bytes that are digested and written in a millisecond, until that is measured. */
const FIRST_RATE = 300_000

/** Decides by measured times whether a result is cheaper kept or made again. */
export class Worth {
  #cost = LEAST_COST
  #rate = FIRST_RATE

  /** Records how long it took to keep a result of this size. */
  measured(milliseconds: number, bytes: number): void {
    if (bytes < 64 * 1024) this.#cost += (Math.max(milliseconds, LEAST_COST) - this.#cost) * 0.05
    else if (milliseconds > 0.1) this.#rate += (bytes / milliseconds - this.#rate) * 0.1
  }

  isWorth(tookMs: number, bytes: number): boolean {
    return tookMs > WORTH * (this.#cost + bytes / this.#rate)
  }

  /** No task that is expected to be shorter is worth a key. */
  get least(): number {
    return WORTH * this.#cost
  }
}
