/** Does this many steps of plain arithmetic. */
export function work(steps) {
  let sum = 0
  for (let i = 0; i < steps; i++) sum += Math.sqrt(i)
  return sum
}

/** How many steps take a millisecond here, when nothing else computes. */
export function stepsPerMillisecond() {
  const STEPS = 1e6
  let best = Infinity
  for (let round = 0; round < 100; round++) {
    const start = performance.now()
    work(STEPS)
    best = Math.min(best, performance.now() - start)
  }
  return STEPS / best
}

/** Milliseconds of work in each round, however long its tasks are. */
const TOTAL = 600
const ROUNDS = 8

/** Gives how many times as fast as in sequence `run` was with tasks of `milliseconds` each. */
export async function speedUps(milliseconds, run) {
  const steps = Math.round(milliseconds * stepsPerMillisecond())
  const tasks = Math.round(TOTAL / milliseconds)
  const sequential = []
  const parallel = []
  // The first two are for V8 to compile what is called, and for the system to learn how long tasks take.
  for (let round = -2; round < ROUNDS; round++) {
    const start = performance.now()
    for (let i = 0; i < tasks; i++) work(steps)
    const middle = performance.now()
    await run(tasks, steps)
    const end = performance.now()
    if (round < 0) continue
    sequential.push((middle - start) / 1000)
    parallel.push((end - middle) / 1000)
  }
  console.log(JSON.stringify({ sequential, parallel }))
}
