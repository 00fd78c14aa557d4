/** A result may stay unannounced for this long in any case; milliseconds. */
const QUIET = 0.25
/** And for this long while there is enough to do; milliseconds. */
const LATE = 30
/** So much to do is enough: until it is done, the coordinator has woken up and sent more. Milliseconds. */
const ENOUGH = 1

/**
 * When a thread wakes the coordinator for results. Where all CPUs are at work, waking it stops a task: it takes 0.1 ms and
 * more out of their time, most of it to fetch from memory what the task has pushed out of the caches. So it is not woken
 * for each result, but in time before there is nothing left to do.
 */
export class Announcements {
  #last = 0
  #results = 0

  /** There is a result. Says whether to announce it; `waiting` tasks are to be run here, and someone may wait for this one. */
  isDue(now: number, waiting: number, isAwaited: boolean): boolean {
    this.#results++
    const silence = now - this.#last
    if (silence <= QUIET) return false
    if (waiting < 2 || isAwaited || silence > LATE) return true
    // It is asked again only after the next of them.
    return (waiting - 1) * (silence / this.#results) < ENOUGH
  }

  /** All results so far are announced. */
  made(now: number): void {
    this.#last = now
    this.#results = 0
  }
}
