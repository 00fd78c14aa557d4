import type { LiveJob } from './job.ts'

interface Limit {
  ends: number
  /** What is left while it does not count. */
  left: number | null
  go: () => void
}

/** Timeouts of attempts. The time during which a generator is held by a full buffer does not count. */
export class Limits {
  readonly #limits = new WeakMap<LiveJob, Limit>()

  start(live: LiveJob, milliseconds: number, go: () => void): NodeJS.Timeout {
    this.#limits.set(live, { ends: performance.now() + milliseconds, left: null, go })
    return setTimeout(go, milliseconds)
  }

  pause(live: LiveJob): void {
    const limit = this.#limits.get(live)
    if (!limit || !live.timer) return
    clearTimeout(live.timer)
    live.timer = null
    limit.left = Math.max(0, limit.ends - performance.now())
  }

  goOn(live: LiveJob): void {
    const limit = this.#limits.get(live)
    if (!limit || limit.left === null) return
    live.timer = this.start(live, limit.left, limit.go)
  }
}
