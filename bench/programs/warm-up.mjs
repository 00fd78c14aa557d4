/**
 * How many tasks run before those that are timed; the same rule for all systems. Warm: as many as are timed, so
 * that V8 has compiled what is measured. Cold: one, so that the threads are there.
 */
export const warmUp = count => (process.argv[3] === 'cold' ? 1 : count)
