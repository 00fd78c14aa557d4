/** How much of each is measured: pieces, and repetitions in each of them. The same numbers are in mpi-peer.c. */
export const PIECES = { ping8: [400, 100], ping1m: [100, 5], allreduce: [40, 1], write: [9, 1] }

/**
 * Seconds of one repetition: the median over short pieces of time. Where something else runs for a moment, the pieces in that moment
 * do not count.
 */
export function timed(what, wtime, body, before = () => {}) {
  const [pieces, each] = PIECES[what]
  const took = []
  for (let piece = 0; piece < pieces; piece++) {
    before()
    const began = wtime()
    for (let i = 0; i < each; i++) body()
    took.push((wtime() - began) / each)
  }
  return took.sort((a, b) => a - b)[took.length >> 1]
}
