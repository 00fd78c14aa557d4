import assert from 'node:assert/strict'
import { test } from 'node:test'

/**
 * What any scheme can reach where nothing is seen of a task before it ends. Until then all devices look alike, so a scheme is how many
 * tasks it has started by each moment. It is given more than it could have: it knows which devices there are, and from the first end on it
 * knows on which of them it is, and does the best there.
 */

const TASKS = 100
const DEVICES = [2, 8, 14, 56, 112]
/** No scheme of ours is better than this where few writers are best; see family.test.ts. */
const SEARCH = 1.05
const ALLOWED = 1.1

/** Tasks per unit of time, in which the device serves as many tasks as it can; one task alone takes `best` units. */
const speed = (n: number, best: number, loss: number): number =>
  n <= best ? n / best : 1 / (1 + loss * (n - best))

/** `counts[i]`: tasks started by `at[i]`, as long as none has ended; after the first end there are as many as `limit` says. */
function time(
  best: number,
  loss: number,
  counts: readonly number[],
  at: readonly number[],
  limit = best,
): number {
  const running: number[] = []
  let [now, next, started, isKnown] = [0, 0, 0, false]
  const startUpTo = (count: number): void => {
    for (; started < Math.min(TASKS, count); started++) running.push(1)
  }
  for (;;) {
    while (!isKnown && next < counts.length && (at[next] as number) <= now)
      startUpTo(counts[next++] as number)
    if (isKnown) startUpTo(started + limit - running.length)
    if (running.length === 0) return now
    const each = speed(running.length, best, loss) / running.length
    let step = Math.min(...running) / each
    const due = at[next]
    if (!isKnown && next < counts.length && due !== undefined) step = Math.min(step, due - now)
    now += step
    for (let i = running.length - 1; i >= 0; i--) {
      const left = (running[i] as number) - step * each
      if (left > 1e-9) running[i] = left
      else {
        running.splice(i, 1)
        isKnown = true
      }
    }
  }
}

/** The least time on the last device of a scheme that is good enough on all others. */
function leastOnLast(loss: number): number {
  const good = DEVICES.map(best => {
    const fixed = Array.from({ length: TASKS }, (_, i) => time(best, loss, [i + 1], [0], i + 1))
    // All at once is what the ladder begins with.
    return Math.min(SEARCH * Math.min(...fixed), time(best, loss, [TASKS], [0]))
  })
  // To start tasks at other moments would only come later on the devices for which they are started.
  const at = [0, ...DEVICES.slice(0, -1)]
  let least = Infinity
  const extend = (counts: readonly number[]): void => {
    const device = counts.length
    const isLast = device === DEVICES.length - 1
    for (let count = TASKS; count >= (counts.at(-1) ?? 1); count--) {
      const all = [...counts, count]
      const ratio = time(DEVICES[device] as number, loss, all, at) / (good[device] as number)
      if (isLast) {
        least = Math.min(least, ratio)
        return
      }
      if (ratio > ALLOWED) continue
      extend(all)
      // Fewer tasks so early would come later on the devices after it, and leave no more room there.
      return
    }
  }
  extend([])
  return least
}

for (const loss of [0.01, 0.1])
  test(`where nothing is seen, who is good on other devices takes 1.5 times as long where 112 are best, ${loss} lost`, context => {
    const least = leastOnLast(loss)
    context.diagnostic(`at least ${least.toFixed(3)} times the time of all at once`)
    assert.ok(least > 1.45, String(least))
  })
