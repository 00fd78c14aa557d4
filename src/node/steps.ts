import type { AttemptSteps } from '../core/events.ts'
import type { Attempt } from './attempt.ts'
import type { GoodEnd } from './endings.ts'

/** Where the time of an attempt went whose end was heard of at `arrivedAt`, and whose files were in place at `now`. */
export function stepsOf(
  { fetched }: Attempt,
  { startedAt, took, inThread }: GoodEnd,
  arrivedAt: number,
  now: number,
): AttemptSteps {
  const decode = inThread ? inThread.decode : 0
  const encode = inThread ? inThread.encode : 0
  const wait = inThread ? Math.min(inThread.wait, took) : 0
  const decodedFrom = startedAt - decode
  return {
    from: micros(fetched ? fetched.at : decodedFrom),
    fetch: fetched ? micros(fetched.took) : 0,
    queue: fetched ? micros(decodedFrom - fetched.at - fetched.took) : 0,
    decode: micros(decode),
    run: micros(took - wait),
    wait: micros(wait),
    encode: micros(encode),
    report: micros(arrivedAt - startedAt - took - encode),
    commit: micros(now - arrivedAt),
  }
}

/** Clocks of threads differ by some microseconds, so differences may be below 0. */
const micros = (milliseconds: number): number => Math.max(0, Math.round(milliseconds * 1000) / 1000)
