import type { Observer } from '../core/events.ts'

/**
 * Something that turns the events of a run into bytes: a journal, a terminal. `observe` is called on the
 * control loop, millions of times, so it never waits and never throws; `close` ends it and waits until
 * what was observed is written.
 */
export interface Reporter {
  observe: Observer
  close(): Promise<void>
}
