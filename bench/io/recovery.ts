/** Tasks over which a rate is taken. */
const WINDOW = 20
/** A rate that is so near to the best counts as recovered. */
const NEAR = 0.9

/** Tasks per second from the first of these ends to the last; `times` are milliseconds, in order. */
export function rateOf(times: readonly number[]): number {
  const took = (times.at(-1) as number) - (times[0] as number)
  return ((times.length - 1) / took) * 1000
}

/**
 * Tasks that end after a change, at time 0, until the next 20 end about as fast as with the best fixed limit. `best` is
 * its tasks per second.
 */
export function tasksToRecover(times: readonly number[], best: number): number {
  for (let ended = 0; ended + WINDOW <= times.length; ended++) {
    const from = ended === 0 ? 0 : (times[ended - 1] as number)
    const took = (times[ended + WINDOW - 1] as number) - from
    if ((WINDOW / took) * 1000 >= best * NEAR) return ended
  }
  return times.length
}
