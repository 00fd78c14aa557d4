/** Work for a CPU whose result depends on every round of it. */
export function arithmetic(seed, rounds) {
  let state = seed + 1
  for (let i = 0; i < rounds; i++) state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
  return state
}
