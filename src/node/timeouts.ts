import type { Attempt } from './attempt.ts'

/** The timeout of an attempt. The time during which a generator is held by a full buffer does not count. */
export interface Timeout {
  timer: NodeJS.Timeout | null
  ends: number
  /** What is left while it does not count. */
  left: number | null
  isPassed: boolean
  readonly pass: () => void
}

/** `pass` returns whether the attempt is stopped for it. */
export function startTimeout(attempt: Attempt, milliseconds: number, pass: () => boolean): void {
  const timeout: Timeout = {
    timer: null,
    ends: performance.now() + milliseconds,
    left: null,
    isPassed: false,
    pass: () => {
      timeout.isPassed = true
      timeout.isPassed = pass()
    },
  }
  timeout.timer = setTimeout(timeout.pass, milliseconds)
  attempt.timeout = timeout
}

export function pauseTimeout({ timeout }: Attempt): void {
  if (!timeout?.timer) return
  clearTimeout(timeout.timer)
  timeout.timer = null
  timeout.left = Math.max(0, timeout.ends - performance.now())
}

export function resumeTimeout({ timeout }: Attempt): void {
  if (!timeout || timeout.left === null) return
  timeout.ends = performance.now() + timeout.left
  timeout.timer = setTimeout(timeout.pass, timeout.left)
  timeout.left = null
}

export function clearTimeoutOf({ timeout }: Attempt): void {
  if (timeout?.timer) clearTimeout(timeout.timer)
}
